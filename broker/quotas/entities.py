"""Whom a quota is for, and which quotas there are."""

from __future__ import annotations

from enum import Enum
from ipaddress import ip_address
from typing import Final, NamedTuple

from barnabas.broker.config.values import ConfigType


class Default(Enum):
    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
"""The default: for all that have no quota of their own."""

Name = str | Default


def address_of(text: str) -> str | None:
    """An IP address as connections have it. None for a host name, which is not resolved here."""
    try:
        return str(ip_address(text))
    except ValueError:
        return None


class Entity(NamedTuple):
    """A user, a client id, a client id of a user, or an address; None for the parts that it does not have."""

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None

    @property
    def parts(self) -> dict[str, Name]:
        """Its parts, under the names that requests use."""
        parts = {USER: self.user, CLIENT_ID: self.client_id, IP: self.ip}
        return {kind: name for kind, name in parts.items() if name is not None}


USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
KINDS: Final = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

CLIENT_KEYS: Final = {
    PRODUCER_BYTE_RATE: ConfigType.LONG,
    CONSUMER_BYTE_RATE: ConfigType.LONG,
    REQUEST_PERCENTAGE: ConfigType.DOUBLE,
    CONTROLLER_MUTATION_RATE: ConfigType.DOUBLE,
}
IP_KEYS: Final = {CONNECTION_CREATION_RATE: ConfigType.INT}
KEYS: Final = {**CLIENT_KEYS, **IP_KEYS}

"""Which alterations of quotas are allowed, and the settings that the registry has afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from barnabas.broker.config.values import INT_MAX, LONG_MAX, ConfigType
from barnabas.broker.quotas.entities import (
    CLIENT_ID,
    CLIENT_KEYS,
    DEFAULT,
    IP,
    IP_KEYS,
    KINDS,
    USER,
    Default,
    Entity,
    Name,
    address_of,
)

_LARGEST: Final = {ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}
# How far a value that must be a whole number may be from one.
_INEXACT: Final = 1e-6

Changes = Mapping[str, float | None]
"""The new values by key; None removes one."""


class InvalidAlteration(Exception):
    """Why a quota cannot be altered like this."""


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    """The entity that a request names. A name of None stands for the default."""
    names: dict[str, Name] = {}
    for kind, name in parts.items():
        if kind not in KINDS:
            raise InvalidAlteration(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidAlteration(f"Empty {kind} not supported")
        names[kind] = DEFAULT if name is None else name
    if not names:
        raise InvalidAlteration("Invalid empty client quota entity")
    ip = names.get(IP)
    if ip is not None and len(names) > 1:
        raise InvalidAlteration("Invalid quota entity combination, IP entity should not be combined with others")
    if ip is not None and not isinstance(ip, Default) and address_of(ip) is None:
        raise InvalidAlteration(f"{ip} is not an IP address")
    return Entity(names.get(USER), names.get(CLIENT_ID), ip)


def check(entity: Entity, changes: Changes) -> None:
    """Refuse a key that is not a quota of such an entity, and a value that the quota cannot have."""
    keys = CLIENT_KEYS if entity.ip is None else IP_KEYS
    for key, value in changes.items():
        if value is None:
            continue
        if key not in keys:
            raise InvalidAlteration(f"Invalid configuration key {key}")
        if not 0 < value < inf:
            raise InvalidAlteration(f"Quota {key} must be greater than 0")
        largest = _LARGEST.get(keys[key])
        if largest is None:
            continue
        if value > largest:
            raise InvalidAlteration(f"Proposed value for {key} is too large for a {keys[key].name}.")
        if abs(value % 1.0) > _INEXACT:
            raise InvalidAlteration(f"{key} cannot be a fractional value.")


def altered(present: Mapping[str, str], changes: Changes) -> dict[str, str]:
    """The settings after an alteration. Settings that are not quotas, such as a user's credentials, stay."""
    configs = dict(present)
    for key, value in changes.items():
        if value is not None:
            is_whole = {**CLIENT_KEYS, **IP_KEYS}[key] in _LARGEST
            configs[key] = str(int(value + _INEXACT)) if is_whole else str(value)
        elif key in CLIENT_KEYS or key in IP_KEYS:
            configs.pop(key, None)
    return configs

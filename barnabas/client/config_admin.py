"""The settings of topics, brokers and groups: described, with where they come from, and altered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, check
from barnabas.client.requests.admin import (
    BROKER,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_configs import DescribeConfigsResponse
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesResponse

KINDS: Final = {"topic": TOPIC, "broker": BROKER, "group": GROUP}
# Kafka calls the settings of all brokers those of the broker without a name.
ALL_BROKERS: Final = "default"
DEFAULT_SOURCE: Final = "default"

_SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "server.properties",
    5: DEFAULT_SOURCE,
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


class Setting(NamedTuple):
    name: str
    value: str | None  # None for a secret
    source: str
    read_only: bool
    sensitive: bool


def settings_of(client: Client, kind: str, name: str, keys: Sequence[str] | None = None) -> list[Setting]:
    """The settings of a resource, or those with these keys, sorted by name."""

    def attempt() -> list[Setting]:
        request = describe_configs((KINDS[kind], _resource_name(kind, name), keys))
        (found,) = _broker_for(client, kind, name).ask(request, DescribeConfigsResponse).results
        check(found.error_code, f"{kind} '{name}'", found.error_message)
        return sorted(
            Setting(
                each.name, each.value, _SOURCES.get(each.config_source, "unknown"), each.read_only, each.is_sensitive
            )
            for each in found.configs
        )

    return client.settled(attempt)


def alter_settings(
    client: Client, kind: str, name: str, *, put: Mapping[str, str] | None = None, delete: Sequence[str] = ()
) -> None:
    """Set and delete settings of a resource, all of them or none."""
    operations = [(SET, key, value) for key, value in (put or {}).items()]
    request = incremental_alter_configs(
        (KINDS[kind], _resource_name(kind, name), [*operations, *((DELETE, key, None) for key in delete)])
    )
    connection = client.controller() if kind != "broker" else _broker_for(client, kind, name)
    (altered,) = connection.ask(request, IncrementalAlterConfigsResponse).responses
    check(altered.error_code, f"{kind} '{name}'", altered.error_message)


def resources(client: Client, kind: str) -> list[str]:
    """The names of everything of a kind that has settings."""
    if kind == "topic":
        return [topic.name or "" for topic in client.topics(None)]
    if kind == "broker":
        return [ALL_BROKERS, *map(str, sorted(client.brokers()))]
    connection = client.any_broker()
    # Version 0 lists clients' metrics only.
    if not connection.serves(ApiKey.LIST_CONFIG_RESOURCES) or connection.version(ApiKey.LIST_CONFIG_RESOURCES) < 1:
        return []
    found = connection.ask(list_config_resources(GROUP), ListConfigResourcesResponse)
    check(found.error_code, "the groups that have settings")
    return sorted(each.resource_name for each in found.config_resources)


def _resource_name(kind: str, name: str) -> str:
    return "" if kind == "broker" and name == ALL_BROKERS else name


def _broker_for(client: Client, kind: str, name: str) -> Connection:
    """A broker has to be asked about its own settings."""
    if kind != "broker" or name == ALL_BROKERS:
        return client.any_broker()
    if not name.isdecimal():
        raise ClientError(f"broker '{name}': name a broker by its id, or use '{ALL_BROKERS}' for all brokers")
    return client.broker(int(name))

"""The settings of a group: what was set for it, and otherwise what the broker has for all groups."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.config.setting import Setting, integer, settings_of


class GroupSettings:
    consumer_session_timeout_ms = integer(45000, "How long the group waits for a heartbeat of a member.", at_least=1)
    consumer_heartbeat_interval_ms = integer(5000, "How often members must send heartbeats.", at_least=1)
    consumer_assignment_interval_ms = integer(1000, "The shortest time between two computed assignments.", at_least=0)


GROUP_SETTINGS: Final[Mapping[str, Setting[Any]]] = settings_of(GroupSettings)


def check_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises InvalidConfigError for a name that groups do not have, or a value outside of the broker's bounds."""
    values = {name: getattr(broker, f"group_{setting.attribute}") for name, setting in GROUP_SETTINGS.items()}
    for name, text in overrides.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfigError(f"Groups have no setting {name}.")
        values[name] = value = setting.parse(text)
        short = setting.attribute.removeprefix("consumer_")
        low, high = (getattr(broker, f"group_consumer_{bound}_{short}") for bound in ("min", "max"))
        if not low <= value <= high:
            raise InvalidConfigError(f"{name} is {value}, but it must be from {low} to {high}.")
    if values["consumer.session.timeout.ms"] <= values["consumer.heartbeat.interval.ms"]:
        raise InvalidConfigError("consumer.session.timeout.ms must be larger than consumer.heartbeat.interval.ms.")


def describe_group(
    overrides: Mapping[str, str], broker: BrokerConfig, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    wanted = GROUP_SETTINGS if names is None else [name for name in GROUP_SETTINGS if name in set(names)]
    return [_describe(name, overrides.get(name), broker) for name in wanted]


def _describe(name: str, own: str | None, broker: BrokerConfig) -> ConfigEntry:
    entry = broker.describe([f"group.{name}"])[0]._replace(name=name, read_only=False)
    if own is None:
        return entry
    source = ConfigSource.GROUP_CONFIG
    return entry._replace(value=own, source=source, synonyms=(ConfigSynonym(name, own, source), *entry.synonyms))

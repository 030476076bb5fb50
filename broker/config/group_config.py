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
    streams_session_timeout_ms = integer(45000, "How long the group waits for a heartbeat of a member.", at_least=1)
    streams_heartbeat_interval_ms = integer(5000, "How often members must send heartbeats.", at_least=1)
    streams_num_standby_replicas = integer(0, "How many copies of a task's state there are, too.", at_least=0)
    streams_initial_rebalance_delay_ms = integer(
        3000, "How long an empty group waits for more members before its first assignment.", at_least=0
    )
    streams_assignment_interval_ms = integer(1000, "The shortest time between two computed assignments.", at_least=0)


GROUP_SETTINGS: Final[Mapping[str, Setting[Any]]] = settings_of(GroupSettings)


def check_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises InvalidConfigError for a name that groups do not have, or a value outside of the broker's bounds."""
    values = {name: getattr(broker, f"group_{setting.attribute}") for name, setting in GROUP_SETTINGS.items()}
    for name, text in overrides.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise InvalidConfigError(f"Groups have no setting {name}.")
        values[name] = value = setting.parse(text)
        low, high = (_bound(broker, setting.attribute, bound) for bound in ("min", "max"))
        if low is not None and value < low:
            raise InvalidConfigError(f"{name} is {value}, but the broker allows no less than {low}.")
        if high is not None and value > high:
            raise InvalidConfigError(f"{name} is {value}, but the broker allows no more than {high}.")
    for kind in ("consumer", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise InvalidConfigError(f"{session} must be larger than {heartbeat}.")


def _bound(broker: BrokerConfig, attribute: str, bound: str) -> int | None:
    """The broker's bound for a setting of groups, if it has one: group.streams.max.session.timeout.ms, for example."""
    kind, _, rest = attribute.partition("_")
    name = f"group_{kind}_{bound}_{rest.removeprefix('num_')}"
    found: int | None = getattr(broker, name, None)
    return found


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

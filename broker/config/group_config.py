"""The settings of a group: what was set for it, and otherwise what the broker has for all groups."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.describe import ConfigEntry, ConfigSource, ConfigSynonym
from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.config.setting import Setting, boolean, integer, settings_of, string


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
    share_session_timeout_ms = integer(45000, "How long the group waits for a heartbeat of a member.", at_least=1)
    share_heartbeat_interval_ms = integer(5000, "How often members must send heartbeats.", at_least=1)
    share_assignment_interval_ms = integer(1000, "The shortest time between two computed assignments.", at_least=0)
    share_record_lock_duration_ms = integer(30000, "How long a member may keep a record.", at_least=1000)
    share_delivery_count_limit = integer(5, "How often a record is delivered before it is given up.", at_least=2)
    share_partition_max_record_locks = integer(
        2000, "How many records of a partition the group may work on at the same time.", at_least=100
    )
    share_auto_offset_reset = string("latest", "Where the group begins to read a partition.")
    share_isolation_level = string(
        "read_uncommitted",
        "Whether the group gets records of open and aborted transactions.",
        one_of=("read_committed", "read_uncommitted"),
    )
    share_renew_acknowledge_enable = boolean(True, "Whether members may ask for more time for a record.")


GROUP_SETTINGS: Final[Mapping[str, Setting[Any]]] = settings_of(GroupSettings)

# The broker has no values of its own for these.
_OF_GROUPS_ONLY: Final = ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")
_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"([-+]?)P(?=.)(?:([-+]?\d+)D)?(?:T(?=.)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def check_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises InvalidConfigError for a name that groups do not have, or a value outside of the broker's bounds."""
    values: dict[str, Any] = {}
    for name, setting in GROUP_SETTINGS.items():
        values[name] = setting.default if name in _OF_GROUPS_ONLY else getattr(broker, f"group_{setting.attribute}")
    for name, text in overrides.items():
        found = GROUP_SETTINGS.get(name)
        if found is None:
            raise InvalidConfigError(f"Groups have no setting {name}.")
        values[name] = value = found.parse(text)
        if name == "share.auto.offset.reset":
            _check_offset_reset(value)
        low, high = (_bound(broker, found.attribute, bound) for bound in ("min", "max"))
        if low is not None and value < low:
            raise InvalidConfigError(f"{name} is {value}, but the broker allows no less than {low}.")
        if high is not None and value > high:
            raise InvalidConfigError(f"{name} is {value}, but the broker allows no more than {high}.")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise InvalidConfigError(f"{session} must be larger than {heartbeat}.")


def _bound(broker: BrokerConfig, attribute: str, bound: str) -> int | None:
    """The broker's bound for a setting of groups, if it has one: group.streams.max.session.timeout.ms, for example."""
    kind, _, rest = attribute.partition("_")
    name = f"group_{kind}_{bound}_{rest.removeprefix('num_')}"
    found: int | None = getattr(broker, name, None)
    return found


def duration_ms(reset: str) -> int | None:
    """How long ago `by_duration:…` (an ISO 8601 duration) says that a group begins; None if it says something else."""
    if not reset.startswith(_BY_DURATION):
        return None
    found = _DURATION.fullmatch(reset[len(_BY_DURATION) :])
    if found is None:
        return None
    sign, days, hours, minutes, seconds, fraction = found.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    part = int((fraction or "").ljust(3, "0")[:3])
    whole += int(seconds or 0) * 1000 + (-part if (seconds or "").startswith("-") else part)
    return -whole if sign == "-" else whole


def _check_offset_reset(reset: str) -> None:
    ago_ms = duration_ms(reset)
    if reset not in ("latest", "earliest") and (ago_ms is None or ago_ms < 0):
        raise InvalidConfigError(
            f"share.auto.offset.reset is {reset}, but it must be latest, earliest, or by_duration: and a duration, "
            "like by_duration:PT1H."
        )


def describe_group(
    overrides: Mapping[str, str], broker: BrokerConfig, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    wanted = GROUP_SETTINGS if names is None else [name for name in GROUP_SETTINGS if name in set(names)]
    return [_describe(name, overrides.get(name), broker) for name in wanted]


def _describe(name: str, own: str | None, broker: BrokerConfig) -> ConfigEntry:
    if name in _OF_GROUPS_ONLY:
        entry = _default(name)
    else:
        entry = broker.describe([f"group.{name}"])[0]._replace(name=name, read_only=False)
    if own is None:
        return entry
    source = ConfigSource.GROUP_CONFIG
    return entry._replace(value=own, source=source, synonyms=(ConfigSynonym(name, own, source), *entry.synonyms))


def _default(name: str) -> ConfigEntry:
    setting = GROUP_SETTINGS[name]
    value = setting.kind.show(setting.default)
    source = ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        name,
        value,
        source,
        read_only=False,
        sensitive=False,
        type=setting.kind.type,
        documentation=setting.documentation,
        synonyms=(ConfigSynonym(name, value, source),),
    )

"""The settings of groups of the consumer protocol: the broker's, and what was set for single groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class ConsumerSettings(Protocol):
    @property
    def group_consumer_assignors(self) -> Sequence[str]: ...
    @property
    def group_consumer_max_size(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...
    @property
    def group_consumer_migration_policy(self) -> str: ...
    @property
    def group_consumer_regex_refresh_interval_ms(self) -> int: ...
    @property
    def group_consumer_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_min_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_max_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_min_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_assignment_interval_ms(self) -> int: ...
    @property
    def group_consumer_min_assignment_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_assignment_interval_ms(self) -> int: ...


def may_upgrade(settings: ConsumerSettings) -> bool:
    """Whether a classic group with members may become a consumer group."""
    return settings.group_consumer_migration_policy.lower() in ("upgrade", "bidirectional")


def may_downgrade(settings: ConsumerSettings) -> bool:
    """Whether a consumer group whose members all speak the classic protocol may become a classic group."""
    return settings.group_consumer_migration_policy.lower() in ("downgrade", "bidirectional")


def may_mix(settings: ConsumerSettings) -> bool:
    """Whether members of the classic protocol may join a consumer group."""
    return settings.group_consumer_migration_policy.lower() != "disabled"


class GroupTimes:
    """How long a group's members may be silent, how often they come, and how soon it is assigned again.

    What was set for a group is kept within the bounds that the broker has now.
    """

    def __init__(self, settings: ConsumerSettings, set_for: Callable[[str], Mapping[str, str]]) -> None:
        """`set_for` gives what was set for a group, as checked texts."""
        self._settings = settings
        self._set_for = set_for

    def session_timeout_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, SESSION_TIMEOUT)
        if own is None:
            return settings.group_consumer_session_timeout_ms
        low, high = settings.group_consumer_min_session_timeout_ms, settings.group_consumer_max_session_timeout_ms
        return min(max(own, low), high)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, HEARTBEAT_INTERVAL)
        if own is None:
            return settings.group_consumer_heartbeat_interval_ms
        low, high = settings.group_consumer_min_heartbeat_interval_ms, settings.group_consumer_max_heartbeat_interval_ms
        return min(max(own, low), high)

    def assignment_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, ASSIGNMENT_INTERVAL)
        if own is None:
            return settings.group_consumer_assignment_interval_ms
        low = settings.group_consumer_min_assignment_interval_ms
        return min(max(own, low), settings.group_consumer_max_assignment_interval_ms)

    def _own(self, group_id: str, name: str) -> int | None:
        text = self._set_for(group_id).get(name)
        return None if text is None else int(text)

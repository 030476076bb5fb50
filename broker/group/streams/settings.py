"""The settings of streams groups: the broker's, and what was set for single groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

NUM_STANDBY_REPLICAS: Final = "num.standby.replicas"
"""The name under which the assignor gets it, which the group's record keeps."""


class StreamsSettings(Protocol):
    @property
    def group_streams_max_size(self) -> int: ...
    @property
    def group_streams_session_timeout_ms(self) -> int: ...
    @property
    def group_streams_min_session_timeout_ms(self) -> int: ...
    @property
    def group_streams_max_session_timeout_ms(self) -> int: ...
    @property
    def group_streams_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_streams_min_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_streams_max_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_streams_assignment_interval_ms(self) -> int: ...
    @property
    def group_streams_min_assignment_interval_ms(self) -> int: ...
    @property
    def group_streams_max_assignment_interval_ms(self) -> int: ...
    @property
    def group_streams_num_standby_replicas(self) -> int: ...
    @property
    def group_streams_max_standby_replicas(self) -> int: ...
    @property
    def group_streams_initial_rebalance_delay_ms(self) -> int: ...


class OfGroup:
    """The settings of single groups. What was set for a group is kept within the bounds that the broker has now."""

    def __init__(self, settings: StreamsSettings, set_for: Callable[[str], Mapping[str, str]]) -> None:
        """`set_for` gives what was set for a group, as checked texts."""
        self._settings = settings
        self._set_for = set_for

    def session_timeout_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, "streams.session.timeout.ms")
        if own is None:
            return settings.group_streams_session_timeout_ms
        low, high = settings.group_streams_min_session_timeout_ms, settings.group_streams_max_session_timeout_ms
        return min(max(own, low), high)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, "streams.heartbeat.interval.ms")
        if own is None:
            return settings.group_streams_heartbeat_interval_ms
        low, high = settings.group_streams_min_heartbeat_interval_ms, settings.group_streams_max_heartbeat_interval_ms
        return min(max(own, low), high)

    def assignment_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        own = self._own(group_id, "streams.assignment.interval.ms")
        if own is None:
            return settings.group_streams_assignment_interval_ms
        low = settings.group_streams_min_assignment_interval_ms
        return min(max(own, low), settings.group_streams_max_assignment_interval_ms)

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        own = self._own(group_id, "streams.initial.rebalance.delay.ms")
        return self._settings.group_streams_initial_rebalance_delay_ms if own is None else own

    def assignment_configs(self, group_id: str) -> Mapping[str, str]:
        """What a target depends on, beside members and topics."""
        copies = self._own(group_id, "streams.num.standby.replicas")
        if copies is None:
            copies = self._settings.group_streams_num_standby_replicas
        else:
            copies = min(copies, self._settings.group_streams_max_standby_replicas)
        return {NUM_STANDBY_REPLICAS: str(copies)}

    def _own(self, group_id: str, name: str) -> int | None:
        text = self._set_for(group_id).get(name)
        return None if text is None else int(text)

"""The settings of share groups for their members: the broker's, and what was set for single groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class ShareSettings(Protocol):
    @property
    def group_share_max_size(self) -> int: ...
    @property
    def group_share_initialize_retry_interval_ms(self) -> int: ...
    @property
    def group_share_session_timeout_ms(self) -> int: ...
    @property
    def group_share_min_session_timeout_ms(self) -> int: ...
    @property
    def group_share_max_session_timeout_ms(self) -> int: ...
    @property
    def group_share_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_share_min_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_share_max_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_share_assignment_interval_ms(self) -> int: ...
    @property
    def group_share_min_assignment_interval_ms(self) -> int: ...
    @property
    def group_share_max_assignment_interval_ms(self) -> int: ...


class ShareGroupTimes:
    """How long a group's members may be silent, how often they come, and how soon it is assigned again.

    What was set for a group is kept within the bounds that the broker has now.
    """

    def __init__(self, settings: ShareSettings, set_for: Callable[[str], Mapping[str, str]]) -> None:
        """`set_for` gives what was set for a group, as checked texts."""
        self._settings = settings
        self._set_for = set_for

    def session_timeout_ms(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.session.timeout.ms",
            settings.group_share_session_timeout_ms,
            settings.group_share_min_session_timeout_ms,
            settings.group_share_max_session_timeout_ms,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.heartbeat.interval.ms",
            settings.group_share_heartbeat_interval_ms,
            settings.group_share_min_heartbeat_interval_ms,
            settings.group_share_max_heartbeat_interval_ms,
        )

    def assignment_interval_ms(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.assignment.interval.ms",
            settings.group_share_assignment_interval_ms,
            settings.group_share_min_assignment_interval_ms,
            settings.group_share_max_assignment_interval_ms,
        )

    def _number(self, group_id: str, name: str, default: int, low: int, high: int) -> int:
        own = self._set_for(group_id).get(name)
        return default if own is None else min(max(int(own), low), high)

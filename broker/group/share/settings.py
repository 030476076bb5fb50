"""The settings of share groups: the broker's, and what was set for single groups."""

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
    @property
    def group_share_record_lock_duration_ms(self) -> int: ...
    @property
    def group_share_min_record_lock_duration_ms(self) -> int: ...
    @property
    def group_share_max_record_lock_duration_ms(self) -> int: ...
    @property
    def group_share_delivery_count_limit(self) -> int: ...
    @property
    def group_share_min_delivery_count_limit(self) -> int: ...
    @property
    def group_share_max_delivery_count_limit(self) -> int: ...
    @property
    def group_share_partition_max_record_locks(self) -> int: ...
    @property
    def group_share_min_partition_max_record_locks(self) -> int: ...
    @property
    def group_share_max_partition_max_record_locks(self) -> int: ...


class ShareGroupConfig:
    """What holds for each group. What was set for a group is kept within the bounds that the broker has now."""

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

    def record_lock_duration_ms(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.record.lock.duration.ms",
            settings.group_share_record_lock_duration_ms,
            settings.group_share_min_record_lock_duration_ms,
            settings.group_share_max_record_lock_duration_ms,
        )

    def delivery_count_limit(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.delivery.count.limit",
            settings.group_share_delivery_count_limit,
            settings.group_share_min_delivery_count_limit,
            settings.group_share_max_delivery_count_limit,
        )

    def partition_max_record_locks(self, group_id: str) -> int:
        settings = self._settings
        return self._number(
            group_id,
            "share.partition.max.record.locks",
            settings.group_share_partition_max_record_locks,
            settings.group_share_min_partition_max_record_locks,
            settings.group_share_max_partition_max_record_locks,
        )

    def auto_offset_reset(self, group_id: str) -> str:
        """`latest`, `earliest` or `by_duration:…`; `config.group_config.duration_ms` reads the last."""
        return self._set_for(group_id).get("share.auto.offset.reset", "latest")

    def reads_committed(self, group_id: str) -> bool:
        return self._set_for(group_id).get("share.isolation.level") == "read_committed"

    def may_renew(self, group_id: str) -> bool:
        return self._set_for(group_id).get("share.renew.acknowledge.enable", "true").lower() == "true"

    def _number(self, group_id: str, name: str, default: int, low: int, high: int) -> int:
        own = self._set_for(group_id).get(name)
        return default if own is None else min(max(int(own), low), high)

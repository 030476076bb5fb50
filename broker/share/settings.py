"""The settings of share groups for their records: the broker's, and what was set for single groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from barnabas.broker.config.group_config import duration_ms
from barnabas.broker.share.in_flight import Limits

RECORD_LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_COUNT_LIMIT: Final = "share.delivery.count.limit"
PARTITION_MAX_RECORD_LOCKS: Final = "share.partition.max.record.locks"
AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION_LEVEL: Final = "share.isolation.level"
RENEW_ACKNOWLEDGE: Final = "share.renew.acknowledge.enable"
LATEST: Final = "latest"
EARLIEST: Final = "earliest"


class BrokerSettings(Protocol):
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


class RecordSettings:
    """What was set for a group is kept within the bounds that the broker has now."""

    def __init__(self, settings: BrokerSettings, set_for: Callable[[str], Mapping[str, str]]) -> None:
        """`set_for` gives what was set for a group, as checked texts."""
        self._settings = settings
        self._set_for = set_for

    def lock_duration_ms(self, group_id: str) -> int:
        own = self._set_for(group_id).get(RECORD_LOCK_DURATION)
        settings = self._settings
        if own is None:
            return settings.group_share_record_lock_duration_ms
        low, high = settings.group_share_min_record_lock_duration_ms, settings.group_share_max_record_lock_duration_ms
        return min(max(int(own), low), high)

    def limits(self, group_id: str) -> Limits:
        settings = self._settings
        set_for = self._set_for(group_id)
        count, locks = set_for.get(DELIVERY_COUNT_LIMIT), set_for.get(PARTITION_MAX_RECORD_LOCKS)
        delivery_count = settings.group_share_delivery_count_limit
        if count is not None:
            low, high = settings.group_share_min_delivery_count_limit, settings.group_share_max_delivery_count_limit
            delivery_count = min(max(int(count), low), high)
        record_locks = settings.group_share_partition_max_record_locks
        if locks is not None:
            low = settings.group_share_min_partition_max_record_locks
            record_locks = min(max(int(locks), low), settings.group_share_max_partition_max_record_locks)
        may_renew = set_for.get(RENEW_ACKNOWLEDGE, "true").lower() == "true"
        return Limits(delivery_count, record_locks, may_renew)

    def is_committed_only(self, group_id: str) -> bool:
        return self._set_for(group_id).get(ISOLATION_LEVEL, "").lower() == "read_committed"

    def offset_reset(self, group_id: str, now_ms: int) -> str | int:
        """Where a group begins: EARLIEST, LATEST, or with the first record that is not older than a time."""
        text = self._set_for(group_id).get(AUTO_OFFSET_RESET, LATEST)
        ago_ms = duration_ms(text)
        if ago_ms is not None:
            return now_ms - ago_ms
        return EARLIEST if text.lower() == EARLIEST else LATEST

"""The settings of share groups for their records: the broker's, and what was set for single groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from barnabas.broker.share.in_flight import Limits

RECORD_LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_COUNT_LIMIT: Final = "share.delivery.count.limit"
PARTITION_MAX_RECORD_LOCKS: Final = "share.partition.max.record.locks"
AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION_LEVEL: Final = "share.isolation.level"
LATEST: Final = "latest"
EARLIEST: Final = "earliest"

_BY_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


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

    def __init__(self, broker: BrokerSettings, set_for: Callable[[str], Mapping[str, str]]) -> None:
        """`set_for` gives what was set for a group, as checked texts."""
        self._broker = broker
        self._set_for = set_for

    def lock_duration_ms(self, group_id: str) -> int:
        own = self._set_for(group_id).get(RECORD_LOCK_DURATION)
        broker = self._broker
        if own is None:
            return broker.group_share_record_lock_duration_ms
        low, high = broker.group_share_min_record_lock_duration_ms, broker.group_share_max_record_lock_duration_ms
        return min(max(int(own), low), high)

    def limits(self, group_id: str) -> Limits:
        broker = self._broker
        set_for = self._set_for(group_id)
        count, locks = set_for.get(DELIVERY_COUNT_LIMIT), set_for.get(PARTITION_MAX_RECORD_LOCKS)
        delivery_count = broker.group_share_delivery_count_limit
        if count is not None:
            low, high = broker.group_share_min_delivery_count_limit, broker.group_share_max_delivery_count_limit
            delivery_count = min(max(int(count), low), high)
        record_locks = broker.group_share_partition_max_record_locks
        if locks is not None:
            low = broker.group_share_min_partition_max_record_locks
            record_locks = min(max(int(locks), low), broker.group_share_max_partition_max_record_locks)
        return Limits(delivery_count, record_locks)

    def is_committed_only(self, group_id: str) -> bool:
        return self._set_for(group_id).get(ISOLATION_LEVEL, "").lower() == "read_committed"

    def offset_reset(self, group_id: str, now_ms: int) -> str | int:
        """Where a group begins: EARLIEST, LATEST, or with the first record that is not older than a time."""
        text = self._set_for(group_id).get(AUTO_OFFSET_RESET, LATEST)
        by_duration = _BY_DURATION.fullmatch(text)
        if by_duration is not None:
            days, hours, minutes, seconds = (float(part or 0) for part in by_duration.groups())
            return now_ms - int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
        return EARLIEST if text.lower() == EARLIEST else LATEST

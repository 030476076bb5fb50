"""Which section of a log may be compacted, and whether it is due."""

from typing import NamedTuple

from barnabas.storage.log import Log


class CleanableSection(NamedTuple):
    """The part of a log's dirty section that can be compacted. It may begin within a segment, and ends with one."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    # It has records that must be compacted by now because of `max.compaction.lag.ms`.
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return (self.is_overdue and self.cleanable_bytes > 0) or self.dirty_ratio > min_cleanable_dirty_ratio


def cleanable_section(log: Log, now_ms: int) -> CleanableSection:
    first_dirty_offset = max(log.first_dirty_offset or 0, log.log_start_offset)
    first_uncleanable_offset = max(_first_uncleanable_offset(log, first_dirty_offset, now_ms), first_dirty_offset)
    clean_bytes = cleanable_bytes = 0
    for segment, end_offset in log.segments.with_ends(log.end_offset):
        if segment.base_offset < first_dirty_offset:
            clean_bytes += segment.size
        if first_dirty_offset < end_offset <= first_uncleanable_offset:
            cleanable_bytes += segment.size
    return CleanableSection(
        first_dirty_offset,
        first_uncleanable_offset,
        clean_bytes,
        cleanable_bytes,
        _is_overdue(log, first_dirty_offset, now_ms),
    )


def _first_uncleanable_offset(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    """The base offset of the first segment that must not be compacted.

    Nothing beyond the recovery point is compacted, because there recovery treats a gap between segments as data loss.
    """
    active = log.segments.active
    limit = min(log.last_stable_offset, log.recovery_point)
    young = now_ms - log.config.min_compaction_lag_ms
    for segment, end_offset in log.segments.with_ends(log.end_offset):
        if segment is active or end_offset > limit:
            return segment.base_offset
        has_to_wait = log.config.min_compaction_lag_ms > 0 and end_offset > first_dirty_offset
        if has_to_wait and segment.largest_timestamp > young:
            return segment.base_offset
    return active.base_offset


def _is_overdue(log: Log, first_dirty_offset: int, now_ms: int) -> bool:
    latest = now_ms - max(log.config.max_compaction_lag_ms, 0)
    if latest <= 0:
        return False
    for segment in log.segments.from_offset(first_dirty_offset):
        # A segment without a timestamp has no age.
        if segment is not log.segments.active and 0 < (segment.first_timestamp or 0) < latest:
            return True
    return False

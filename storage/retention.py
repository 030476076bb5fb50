"""Which segments a log no longer needs: because of their age, the log's size, or deleted records."""

from typing import Final

from barnabas.storage.flush import PendingDeletion
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment

# The files of each are closed and renamed.
_SEGMENTS_AT_ONCE: Final = 20


def apply_retention(log: Log, now_ms: int) -> PendingDeletion | None:
    """Remove the segments that have expired, but not too many at once: call it until it returns None."""
    doomed = deletable_segments(log, now_ms, _SEGMENTS_AT_ONCE)
    return log.delete_segments(doomed, now_ms) if doomed else None


def deletable_segments(log: Log, now_ms: int, at_most: int) -> list[Segment]:
    """The first segments of the log, up to the first one that is still needed, or up to this many.

    Segments above the high watermark always stay, and those below the log start offset always go. Age and size count
    only if `cleanup.policy` has "delete".
    """
    config = log.config
    excess = log.size - config.retention_bytes if config.retention_bytes >= 0 else -1
    doomed: list[Segment] = []
    for segment, end_offset in log.segments.with_ends(log.end_offset):
        is_active = segment is log.segments.active
        if len(doomed) == at_most or end_offset > log.high_watermark or (is_active and segment.size == 0):
            break
        below_start = end_offset <= log.log_start_offset and not is_active
        too_old = (
            config.delete and config.retention_ms >= 0 and now_ms - segment.largest_timestamp > config.retention_ms
        )
        too_much = config.delete and excess >= segment.size
        if not below_start and not too_old and not too_much:
            break
        doomed.append(segment)
        excess -= segment.size
    return doomed

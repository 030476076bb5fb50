"""Appending what a partition's leader has appended before: batches that have their offsets, taken as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import NO_PRODUCER_ID, BatchHeader, validate_batch
from protocol.records.errors import RecordsError
from storage.errors import LogFailure, OffsetsOutOfOrder
from storage.producer_state import AppendOrigin
from storage.segment import MAX_RELATIVE_OFFSET
from storage.write import AppendResult, PendingWrite, Refusal

if TYPE_CHECKING:
    from storage.log import Log


def append_as_follower(log: Log, records: memoryview, now_ms: int) -> None:
    position = 0
    while position < len(records):
        log.raise_if_failed()
        position += _append_run(log, records[position:], now_ms)


def _append_run(log: Log, records: memoryview, now_ms: int) -> int:
    """Append the first batches: all that follow on one another in one leader epoch and fit into one segment.

    They are written together. Gives their size.
    """
    header = validate_batch(records)
    if header.base_offset < log.end_offset:
        raise OffsetsOutOfOrder(f"offset {header.base_offset} where the log ends at {log.end_offset}")
    _prepare(log, header, now_ms)
    epoch = header.partition_leader_epoch
    results: list[AppendResult | Refusal] = [AppendResult(header.base_offset, header.last_offset)]
    write = PendingWrite(log, epoch)
    write.next_offset = header.base_offset
    size = 0
    while True:
        batch = records[size : size + header.size]
        if header.producer_id != NO_PRODUCER_ID:
            write.add_producer(batch, header, AppendOrigin.REPLICATION, 0)
        write.add(batch, (header.last_offset, header.max_timestamp, header.size))
        size += header.size
        try:
            header = validate_batch(records, size)
        except RecordsError:
            # The end, or a batch that will be refused when its turn comes.
            break
        follows = header.base_offset == write.next_offset and header.partition_leader_epoch == epoch
        if not follows or not _fits(log, header, size, now_ms):
            break
    write.finish(results)
    if isinstance(results[0], LogFailure):
        raise results[0]
    return size


def _prepare(log: Log, header: BatchHeader, now_ms: int) -> None:
    """Make the log ready for a batch: begin a segment if it does not fit into this one, note a new leader epoch."""
    active = log.segments.active
    too_far = header.last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    try:
        if too_far or (active.size and not _fits(log, header, 0, now_ms)):
            log.roll(now_ms, at=header.base_offset)
            log.end_offset = header.base_offset
        if header.partition_leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
    except OSError as error:
        raise LogFailure(f"{log.topic_partition}: {error}") from None


def _fits(log: Log, header: BatchHeader, gathered: int, now_ms: int) -> bool:
    room, roll_after, last_allowed = log.roll_limits(now_ms)
    return gathered + header.size <= room and header.max_timestamp <= roll_after and header.last_offset <= last_allowed

"""Appending batches from a partition's leader as they are, with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.records.batch import HEADER_SIZE, NO_PRODUCER_ID, BatchHeader, read_header, validate_batch
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.errors import LogFailure, OffsetsOutOfOrder
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.segment import MAX_RELATIVE_OFFSET
from barnabas.storage.write import AppendResult, PendingWrite, Refusal

if TYPE_CHECKING:
    from barnabas.storage.log import Log


def append_as_follower(log: Log, records: memoryview, now_ms: int) -> None:
    position = 0
    # A leader sends as many bytes as were asked for: all but the first batch may be cut off.
    while position < len(records) and not (position and _is_cut_off(records, position)):
        log.raise_if_failed()
        position += _append_run(log, records[position:], now_ms)


def _is_cut_off(records: memoryview, position: int) -> bool:
    left = len(records) - position
    return left < HEADER_SIZE or read_header(records, position).size > left


def _append_run(log: Log, records: memoryview, now_ms: int) -> int:
    """Append the first batches: those that are contiguous, have one leader epoch and fit into one segment.

    They are written together. Returns their size.
    """
    header = validate_batch(records)
    if header.base_offset < log.end_offset:
        raise OffsetsOutOfOrder(f"offset {header.base_offset} does not continue a log that ends at {log.end_offset}")
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
            # The end, or a batch that will be refused in its own turn.
            break
        follows = header.base_offset == write.next_offset and header.partition_leader_epoch == epoch
        if not follows or not _fits(log, header, size, now_ms):
            break
    write.finish(results)
    if isinstance(results[0], LogFailure):
        raise results[0]
    return size


def _prepare(log: Log, header: BatchHeader, now_ms: int) -> None:
    """Prepare the log for a batch: roll the segment if the batch does not fit, and record a new leader epoch."""
    active = log.segments.active
    too_far = header.last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    try:
        if too_far or (active.size and not _fits(log, header, 0, now_ms)):
            log.roll(now_ms, at=header.base_offset)
            log.end_offset = header.base_offset
        if header.partition_leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
    except OSError as error:
        raise log.disk_failure(error) from None


def _fits(log: Log, header: BatchHeader, gathered: int, now_ms: int) -> bool:
    room, roll_after, last_allowed = log.roll_limits(now_ms)
    return gathered + header.size <= room and header.max_timestamp <= roll_after and header.last_offset <= last_allowed

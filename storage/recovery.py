"""Rebuilds everything that is derived from the log: after a crash, a truncation, or the loss of another file.

It reads only headers, checksums, and the few records that end transactions.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    BatchHeader,
    read_header,
)
from barnabas.protocol.records.checksum import crc32c
from barnabas.protocol.records.control import read_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.checkpoints import EpochEntry
from barnabas.storage.producer_state import AppendOrigin, ProducerState, ProducerUpdate
from barnabas.storage.segment import MAX_RELATIVE_OFFSET, Segment
from barnabas.storage.segments import Segments
from barnabas.storage.snapshots import Snapshots

# Header fields: base offset, batch length, leader epoch, magic, CRC, last offset delta, max timestamp, producer id.
_CHECKED_FIELDS: Final = struct.Struct(">qiibI2xi8xqq")
_MIN_BATCH_LENGTH: Final = HEADER_SIZE - LENGTH_OVERHEAD
_REPLICATION: Final = AppendOrigin.REPLICATION


def recover_segment(
    segment: Segment, interval: int, state: ProducerState, epochs: list[EpochEntry], min_offset: int
) -> int:
    """Check every batch of a segment, truncate it at the first invalid one, and rebuild its indexes.

    The producer state and the epochs are updated with the batches that are kept. Returns the offset after the last
    batch, at least `min_offset`: a batch whose offsets do not ascend is as invalid as one with a wrong checksum.
    """
    size = os.fstat(segment.handle.fd).st_size
    for index in segment.indexes:
        index.reset()
    segment.begin_again()
    next_offset = max(min_offset, segment.base_offset)
    base_offset = segment.base_offset
    unpack = _CHECKED_FIELDS.unpack_from
    index_batch = segment.index_batch
    latest_epoch = epochs[-1].epoch if epochs else -1
    position = 0
    with _mapped(segment, size) as data:
        while size - position >= HEADER_SIZE:
            batch_offset, batch_length, epoch, magic, crc, last_offset_delta, max_timestamp, producer_id = unpack(
                data, position
            )
            end = position + LENGTH_OVERHEAD + batch_length
            last_offset = batch_offset + last_offset_delta
            if (
                magic != MAGIC
                or batch_length < _MIN_BATCH_LENGTH
                or end > size
                or batch_offset < next_offset
                or last_offset_delta < 0
                or last_offset - base_offset > MAX_RELATIVE_OFFSET
                or crc32c(data[position + ATTRIBUTES_POSITION : end]) != crc
            ):
                break
            if producer_id != NO_PRODUCER_ID:
                try:
                    replay(state, read_header(data, position), data[position:end], segment)
                except RecordsError:
                    break
            if epoch > latest_epoch:
                epochs.append(EpochEntry(epoch, batch_offset))
                latest_epoch = epoch
            index_batch(last_offset, max_timestamp, end - position, interval)
            next_offset = last_offset + 1
            position = end
    if position < size:
        segment.cut_file()
    return next_offset


def replay(state: ProducerState, header: BatchHeader, batch: memoryview, segment: Segment | None) -> None:
    """Update a producer state with a batch in the log, and the segment's index with a transaction that it aborts."""
    update = ProducerUpdate(state)
    if header.is_control:
        marker = read_end_transaction_marker(batch, header)
        if marker is not None:
            update.add_marker(header, marker, header.base_offset, _REPLICATION)
    else:
        update.add_data(header, header.base_offset, _REPLICATION)
    for aborted in state.apply(update):
        if segment is not None:
            segment.transaction_index.append(aborted)


def rebuild_producer_state(segments: Segments, snapshots: Snapshots, end_offset: int) -> ProducerState:
    """The producer state at `end_offset`: the latest snapshot before it, plus the batches after that."""
    start, state = snapshots.load_latest(end_offset) or (segments.first.base_offset, ProducerState())
    for segment in segments.from_offset(start):
        # Later batches may not have been checked yet.
        if segment.base_offset < end_offset and start < end_offset:
            replay_segment(segment, state, start, end_offset)
    return state


def replay_segment(segment: Segment, state: ProducerState, start: int, end_offset: int) -> None:
    """Update a producer state with the batches of a segment in [start, end_offset)."""
    for position, header in segment.headers_near(start):
        if header.base_offset >= end_offset:
            break
        if header.base_offset >= start and header.producer_id != NO_PRODUCER_ID:
            replay(state, header, segment.read_batch(position, header) if header.is_control else memoryview(b""), None)


@contextmanager
def _mapped(segment: Segment, size: int) -> Iterator[memoryview]:
    if size == 0:
        yield memoryview(b"")
        return
    with (
        mmap.mmap(segment.handle.fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ) as mapping,
        memoryview(mapping) as data,
    ):
        yield data

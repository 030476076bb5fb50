"""What was read of a log for a share group: its batches, and the slice of the file that is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.broker.share.in_flight import FetchedBatch
from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.segment import FileSlice

_WINDOW = 8192


class Located(NamedTuple):
    """A batch, and where it is in the file."""

    header: BatchHeader
    position: int

    @property
    def offsets(self) -> FetchedBatch:
        return FetchedBatch(self.header.base_offset, self.header.next_offset - 1)


def batches_of(records: FileSlice, enough: int) -> list[Located]:
    """The complete batches of a slice, up to the one that has the offset `enough`. Reads headers only."""
    found: list[Located] = []
    for located in _scan(records):
        found.append(located)
        if located.header.next_offset > enough:
            break
    return found


def _scan(records: FileSlice) -> Iterator[Located]:
    fd = records.handle.fileno()
    position, end = records.position, records.position + records.size
    window = b""
    start = position
    while end - position >= HEADER_SIZE:
        if position + HEADER_SIZE > start + len(window):
            start = position
            window = os.pread(fd, min(_WINDOW, end - position), position)
            if len(window) < HEADER_SIZE:
                return
        header = read_header(window, position - start)
        if position + header.size > end:
            return
        yield Located(header, position)
        position += header.size


def covering(records: FileSlice, batches: Sequence[Located], first: int, last: int) -> FileSlice:
    """The part of a slice with the batches that have these offsets."""
    wanted = [each for each in batches if each.header.next_offset > first and each.header.base_offset <= last]
    begin, end = wanted[0], wanted[-1]
    return FileSlice(records.handle, begin.position, end.position + end.header.size - begin.position)


def aborted_batches(
    records: FileSlice, batches: Sequence[Located], aborted: Sequence[AbortedTransaction]
) -> list[FetchedBatch]:
    """The batches of transactions that were aborted."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for each in batches:
        header = each.header
        while waiting and waiting[-1].first_offset < header.next_offset:
            producers.add(waiting.pop().producer_id)
        if header.producer_id not in producers:
            continue
        if not header.is_control:
            if header.is_transactional:
                found.append(each.offsets)
            continue
        batch = memoryview(os.pread(records.handle.fileno(), header.size, each.position))
        marker = read_end_transaction_marker(batch, header)
        if marker is not None and marker.control_type is ControlType.ABORT:
            producers.discard(header.producer_id)
    return found

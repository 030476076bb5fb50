"""What a reader of committed records must skip in a partition: aborted transactions, and the undecided end.

An aborted transaction is in the `.txnindex` of the segment that holds its end. The last segment's index may not have
reached its file and does not contain open transactions. So the last segment of the log itself is read, together with
the producer snapshot at its beginning, which lists the transactions that were open there. If that snapshot or an index
is missing, reading begins earlier, at worst with the first segment.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.pipeline.segments.batches import Chunk, read_chunks
from barnabas.pipeline.segments.directory import Segment
from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, read_header
from barnabas.protocol.records.checksum import crc32c
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker

INDEX_SUFFIX: Final = ".index"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

_INDEX_ENTRY: Final = struct.Struct(">hqqqq")
_SNAPSHOT_PREFIX: Final = struct.Struct(">hIi")
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_SNAPSHOT_CHECKED_FROM: Final = 6


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


class Decided(NamedTuple):
    """The aborted transactions of a partition, and where its undecided part begins (None: all of it is decided)."""

    aborted: list[AbortedTransaction]
    last_stable_offset: int | None


def decided(segments: list[Segment]) -> Decided:
    aborted: list[AbortedTransaction] = []
    first, under_way = _where_to_begin(segments)
    for segment in segments[:first]:
        aborted += read_transaction_index(segment)
    for segment in segments[first:]:
        for chunk in read_chunks(segment.path):
            if isinstance(chunk, Chunk):
                _follow(chunk, under_way, aborted)
    return Decided(aborted, min(under_way.values(), default=None))


def _where_to_begin(segments: list[Segment]) -> tuple[int, dict[int, int]]:
    """The first segment to read, and the transactions under way where it begins."""
    trusted = 0
    # A segment with an offset index also has its other indexes, if they have entries; without it, they were lost.
    while trusted < len(segments) - 1 and Path(segments[trusted].beside(INDEX_SUFFIX)).exists():
        trusted += 1
    for number in range(trusted, 0, -1):
        under_way = read_snapshot(segments[number])
        if under_way is not None:
            return number, under_way
    return 0, {}


def _follow(chunk: Chunk, under_way: dict[int, int], aborted: list[AbortedTransaction]) -> None:
    headers = chunk.headers
    transactional = (headers.attributes & TRANSACTIONAL_FLAG).nonzero()[0]
    data = chunk.data.data
    for i in transactional:
        producer_id = int(headers.producer_id[i])
        if not headers.attributes[i] & CONTROL_FLAG:
            under_way.setdefault(producer_id, int(headers.base_offset[i]))
            continue
        batch = data[int(headers.position[i]) :][: int(headers.size[i])]
        marker = read_end_transaction_marker(batch, read_header(batch))
        first_offset = under_way.pop(producer_id, None) if marker is not None else None
        if marker is not None and marker.control_type is ControlType.ABORT and first_offset is not None:
            aborted.append(AbortedTransaction(producer_id, first_offset, int(headers.last_offset[i])))


def read_transaction_index(segment: Segment) -> list[AbortedTransaction]:
    try:
        data = Path(segment.beside(TRANSACTION_INDEX_SUFFIX)).read_bytes()
    except FileNotFoundError:
        return []
    whole = len(data) - len(data) % _INDEX_ENTRY.size
    entries = _INDEX_ENTRY.iter_unpack(data[:whole])
    return [AbortedTransaction(producer_id, first, last) for _, producer_id, first, last, _ in entries]


def read_snapshot(segment: Segment) -> dict[int, int] | None:
    """The first offsets of the transactions under way where a segment begins, by producer; None if unknown."""
    try:
        data = Path(segment.beside(SNAPSHOT_SUFFIX)).read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < _SNAPSHOT_PREFIX.size:
        return None
    version, crc, count = _SNAPSHOT_PREFIX.unpack_from(data)
    if version != 1 or crc32c(data[_SNAPSHOT_CHECKED_FROM:]) != crc:
        return None
    if len(data) != _SNAPSHOT_PREFIX.size + count * _SNAPSHOT_ENTRY.size:
        return None
    entries = _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_PREFIX.size :])
    return {producer_id: first for producer_id, *_, first in entries if first >= 0}


class AbortedBatches:
    """Tells whether a batch belongs to an aborted transaction."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._of_producer: dict[int, list[AbortedTransaction]] = {}
        for transaction in sorted(aborted, key=lambda one: one.first_offset):
            self._of_producer.setdefault(transaction.producer_id, []).append(transaction)

    def __contains__(self, batch: tuple[int, int]) -> bool:
        """A batch by its producer's id and its base offset."""
        producer_id, base_offset = batch
        transactions = self._of_producer.get(producer_id)
        if not transactions:
            return False
        # A producer's transactions are sequential: the last that began before the batch contains it, or is over.
        number = bisect_right(transactions, base_offset, key=lambda one: one.first_offset) - 1
        return number >= 0 and base_offset <= transactions[number].last_offset

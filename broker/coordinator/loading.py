"""Loading a coordinator's shard: everything in its partition is replayed.

A load belongs to one leadership. It reads what the log held when that leadership started, which does not change while
this broker leads, and it is complete when all of that is committed: until then a new leader may not have it, and
answers based on it could turn out to be wrong. Nobody is served before that. A load that is no longer wanted, because
the partition was lost or is led in a newer epoch, ends without a result (KAFKA-10614).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.broker.coordinator.at_offset import AtOffset
from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.coordinator.transactional import InTransaction, TransactionEnd
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.surroundings import Worker
from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.protocol.records.record import read_records
from barnabas.storage.segment import FileSlice

# How much is read at a time; the loop runs in between.
_LOAD_BYTES: Final = 128 * 1024

ReadRecord = Callable[[CoordinatorRecord], object | None]


class _Read(NamedTuple):
    """A record or a marker as it was read, or the exception that reading it raised."""

    offset: int
    what: Any  # mypyc cannot compile a field that is an `object`


class Load:
    """Records that cannot be read or replayed are skipped and counted."""

    def __init__(
        self,
        partition: Partition,
        worker: Worker,
        read_record: ReadRecord,
        in_transactions: bool,
        with_offsets: bool,
        replay: Callable[[Any], None],
        is_wanted: Callable[[], bool],
        done: Callable[[Exception | None], None],
    ) -> None:
        """`done` is called once, unless the load is no longer wanted: it is complete, or this is why it is not."""
        self._partition = partition
        self._worker = worker
        self._read_record = read_record
        self._in_transactions = in_transactions
        self._with_offsets = with_offsets
        self._replay = replay
        self._is_wanted = is_wanted
        self._done = done
        self._end_offset = partition.log.end_offset
        self._count = 0
        self._first = ""

    @property
    def passed_over(self) -> str:
        return f"{self._count} passed over, {self._first}" if self._count else ""

    def begin(self) -> None:
        self._go_on(self._partition.log.log_start_offset)

    def _go_on(self, offset: int) -> None:
        """Replay from an offset on, piece by piece: read and parsed on a worker thread, replayed here."""
        try:
            stretch = self._partition.log.read(offset, _LOAD_BYTES, upper_bound=self._end_offset)
        except Exception as error:
            self._done(error)
            return
        if stretch is None:
            self._partition.when_committed(self._end_offset, self._committed)
            return

        def parsed(outcome: tuple[int, list[_Read]] | Exception) -> None:
            if not self._is_wanted():
                return
            if isinstance(outcome, Exception):
                self._done(outcome)
                return
            next_offset, found = outcome
            for read in found:
                self._replay_one(read)
            self._go_on(next_offset)

        self._worker.run(lambda: self._parse(stretch, offset), parsed)

    def _committed(self, failure: Exception | None) -> None:
        if self._is_wanted():
            self._done(failure)

    def _replay_one(self, read: _Read) -> None:
        failure = read.what if isinstance(read.what, Exception) else None
        if failure is None:
            try:
                self._replay(AtOffset(read.offset, read.what) if self._with_offsets else read.what)
            except Exception as error:
                failure = error
        if failure is not None:
            self._count += 1
            self._first = self._first or f"the first at offset {read.offset}: {type(failure).__name__}: {failure}"

    def _parse(self, stretch: FileSlice, offset: int) -> tuple[int, list[_Read]]:
        """The records of the complete batches in a piece of the log, and the offset after them."""
        data = memoryview(os.pread(stretch.handle.fileno(), stretch.size, stretch.position))
        found: list[_Read] = []
        next_offset = offset
        for batch, header in whole_batches(data):
            next_offset = header.next_offset
            try:
                self._parse_batch(batch, header, found)
            except Exception as error:
                found.append(_Read(header.base_offset, error))
        if next_offset <= offset:
            raise CorruptRecords(f"the log does not continue after offset {offset}")
        return next_offset, found

    def _parse_batch(self, batch: memoryview, header: BatchHeader, found: list[_Read]) -> None:
        if (header.is_control or header.is_transactional) and not self._in_transactions:
            raise CorruptRecords("no transaction writes to this topic")
        if header.is_control:
            marker = read_end_transaction_marker(batch, header)
            if marker is not None:
                end = TransactionEnd(header.producer_id, marker.control_type is ControlType.COMMIT)
                found.append(_Read(header.base_offset, end))
            return
        for record in read_records(batch, header):
            try:
                read = self._read_record(CoordinatorRecord(record.key or b"", record.value))
            except Exception as error:
                found.append(_Read(record.offset, error))
                continue
            if read is not None:
                in_transaction = InTransaction(header.producer_id, read) if header.is_transactional else read
                found.append(_Read(record.offset, in_transaction))


def whole_batches(data: memoryview) -> Iterator[tuple[memoryview, BatchHeader]]:
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        if header.size > len(data) - position:
            return
        yield data[position : position + header.size], header
        position += header.size

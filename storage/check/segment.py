"""Checks a segment: its batches, and its indexes against them."""

import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from barnabas.protocol.records.batch import NO_PRODUCER_ID, BatchHeader, validate_batch
from barnabas.protocol.records.compression import compression_type
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.records.record import read_records
from barnabas.storage.check.problem import Problem
from barnabas.storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
)
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.producer_state import AppendOrigin, ProducerState, ProducerUpdate
from barnabas.storage.segment import MAX_RELATIVE_OFFSET

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_TRANSACTION_ENTRY: Final = struct.Struct(">hqqqq")
# Marks an index entry whose position or offset is not in the log.
_NOTHING: Final = -2


class SegmentCheck:
    """Walks over the batches of a segment, then checks the indexes against them."""

    def __init__(self, folder: str, base_offset: int, suffix: str = "", *, deep: bool = False) -> None:
        """`suffix` is appended to the names of the segment's files. `deep` reads every record."""
        self.folder = folder
        self.base_offset = base_offset
        self.path = offset_file(folder, base_offset, LOG_SUFFIX + suffix)
        self.problems: list[Problem] = []
        # Whether the whole file consists of valid batches, and whether there are any.
        self.is_whole = True
        self._is_empty = True
        self._suffix = suffix
        self._deep = deep
        self._cut_short: list[Problem] = []
        self._offset_index = self._read_index(OFFSET_INDEX_SUFFIX, _OFFSET_ENTRY)
        self._time_index = self._read_index(TIME_INDEX_SUFFIX, _TIME_ENTRY)
        self._transaction_index = self._read_index(TRANSACTION_INDEX_SUFFIX, _TRANSACTION_ENTRY)
        # What index entries should say: the last offset of the batch at a position, and the latest timestamp up to an
        # offset.
        self._last_offsets = {position: _NOTHING for _, position in self._offset_index or ()}
        self._max_timestamps = {base_offset + offset: _NOTHING for _, offset in self._time_index or ()}
        self._max_timestamp = -1
        # Abort markers by their offset: their producer, and what they aborted, if that is still in the log.
        self._abort_markers: dict[int, int] = {}
        self._aborted: dict[int, AbortedTransaction] = {}

    def walk(self, min_offset: int, state: ProducerState) -> Iterator[BatchHeader]:
        """The headers of all batches up to the first invalid one. Updates the producer state."""
        next_offset = max(min_offset, self.base_offset)
        position = 0
        with _mapped(self.path) as data:
            while position < len(data):
                try:
                    header = self._check_batch(data, position, next_offset, state)
                except RecordsError as error:
                    self.is_whole = False
                    message = f"{error}; {len(data) - position} bytes from here on cannot be read"
                    self._report(self.path, position, message)
                    return
                self._is_empty = False
                last_offset = header.last_offset
                if position in self._last_offsets:
                    self._last_offsets[position] = last_offset
                if header.max_timestamp > self._max_timestamp:
                    self._max_timestamp = header.max_timestamp
                if last_offset in self._max_timestamps:
                    self._max_timestamps[last_offset] = self._max_timestamp
                yield header
                next_offset = header.next_offset
                position += header.size

    def _check_batch(self, data: memoryview, position: int, next_offset: int, state: ProducerState) -> BatchHeader:
        header = validate_batch(data, position)
        if header.base_offset < next_offset:
            raise RecordsError(f"a batch begins at offset {header.base_offset}, but {next_offset} is next")
        if header.last_offset_delta < 0 or header.last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            raise RecordsError(f"a batch ends at offset {header.last_offset}, beyond the segment's range")
        if not 0 <= header.record_count <= header.last_offset_delta + 1:
            raise RecordsError(f"{header.record_count} records in {header.last_offset_delta + 1} offsets")
        compression_type(header.compression)
        batch = data[position : position + header.size]
        if self._deep:
            _check_records(batch, header)
        if header.producer_id != NO_PRODUCER_ID:
            self._replay(batch, header, state)
        return header

    def _replay(self, batch: memoryview, header: BatchHeader, state: ProducerState) -> None:
        update = ProducerUpdate(state)
        if header.is_control:
            marker = read_end_transaction_marker(batch, header)
            if marker is not None:
                if marker.control_type is ControlType.ABORT:
                    self._abort_markers[header.base_offset] = header.producer_id
                update.add_marker(header, marker, header.base_offset, AppendOrigin.REPLICATION)
        else:
            update.add_data(header, header.base_offset, AppendOrigin.REPLICATION)
        for aborted in state.apply(update):
            self._aborted[aborted.last_offset] = aborted

    def check_indexes(self, *, complete: bool) -> None:
        """Every entry must be correct. If the indexes are `complete`, no required entry may be missing."""
        complete = complete and not self._is_empty
        self.problems += self._cut_short
        self._check_offset_index(complete)
        self._check_time_index(complete)
        self._check_transaction_index(complete)

    def _check_offset_index(self, complete: bool) -> None:
        path = self._index_path(OFFSET_INDEX_SUFFIX)
        if self._offset_index is None and complete:
            self._report(path, None, "is missing")
        last_offset = last_position = -1
        for at, (relative_offset, position) in _numbered(self._offset_index, _OFFSET_ENTRY):
            offset = self.base_offset + relative_offset
            found = self._last_offsets[position]
            if offset <= last_offset or position <= last_position:
                self._report(path, at, f"offset {offset} at byte {position} is out of order")
            elif found == _NOTHING:
                self._report(path, at, f"no batch begins at byte {position}, where offset {offset} should be")
            elif found != offset:
                self._report(path, at, f"the batch at byte {position} ends at offset {found}, not {offset}")
            last_offset, last_position = offset, position

    def _check_time_index(self, complete: bool) -> None:
        path = self._index_path(TIME_INDEX_SUFFIX)
        if self._time_index is None and complete:
            self._report(path, None, "is missing")
        last_timestamp, last_offset = -1, self.base_offset - 1
        for at, (timestamp, relative_offset) in _numbered(self._time_index, _TIME_ENTRY):
            offset = self.base_offset + relative_offset
            found = self._max_timestamps[offset]
            if timestamp <= last_timestamp or offset <= last_offset:
                self._report(path, at, f"time {timestamp} at offset {offset} is out of order")
            elif found == _NOTHING:
                self._report(path, at, f"no batch ends at offset {offset}, where time {timestamp} should be")
            elif found != timestamp:
                self._report(path, at, f"the latest time up to offset {offset} is {found}, not {timestamp}")
            last_timestamp, last_offset = timestamp, offset
        if complete and self._time_index is not None and last_timestamp < self._max_timestamp:
            self._report(path, None, f"the latest time, {self._max_timestamp}, is missing")

    def _check_transaction_index(self, complete: bool) -> None:
        path = self._index_path(TRANSACTION_INDEX_SUFFIX)
        missing = dict(self._aborted)
        last_marker = -1
        for at, entry in _numbered(self._transaction_index, _TRANSACTION_ENTRY):
            version, producer_id, first_offset, last_offset, _ = entry
            found = missing.pop(last_offset, None)
            if version != 0:
                self._report(path, at, f"version {version}")
            elif last_offset <= last_marker:
                self._report(path, at, f"the marker at offset {last_offset} is out of order")
            elif self._abort_markers.get(last_offset) != producer_id:
                self._report(path, at, f"producer {producer_id} aborted nothing at offset {last_offset}")
            # Compaction may have removed the beginning.
            elif found is not None and first_offset > found.first_offset:
                self._report(path, at, f"an aborted transaction begins at {found.first_offset}, not {first_offset}")
            last_marker = last_offset
        if complete:
            for aborted in missing.values():
                message = f"the abort of producer {aborted.producer_id} at offset {aborted.last_offset} is missing"
                self._report(path, None, message)

    def _index_path(self, suffix: str) -> str:
        return offset_file(self.folder, self.base_offset, suffix + self._suffix)

    def _read_index(self, suffix: str, entry: struct.Struct) -> list[tuple[int, ...]] | None:
        """The entries of an index; None if there is no file."""
        path = self._index_path(suffix)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        size = len(data) - len(data) % entry.size
        if size < len(data):
            self._cut_short.append(Problem(path, size, "the last entry is truncated"))
        return list(entry.iter_unpack(data[:size]))

    def _report(self, path: str, position: int | None, message: str) -> None:
        self.problems.append(Problem(path, position, message))


def _numbered(entries: Iterable[tuple[int, ...]] | None, entry: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Entries with their positions in the file."""
    return ((number * entry.size, fields) for number, fields in enumerate(entries or ()))


def _check_records(batch: memoryview, header: BatchHeader) -> None:
    next_offset = header.base_offset
    for record in read_records(batch, header):
        if not next_offset <= record.offset <= header.last_offset:
            raise RecordsError(f"a record has offset {record.offset} in a batch that ends at {header.last_offset}")
        next_offset = record.offset + 1


@contextmanager
def _mapped(path: str) -> Iterator[memoryview]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_size == 0:
            yield memoryview(b"")
        else:
            with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapping, memoryview(mapping) as data:
                yield data
    finally:
        os.close(fd)

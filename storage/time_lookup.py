"""Finding a record by its time.

Headers tell which batches may hold it, and only those are read. But a batch may hold millions of records, and its
header may claim a time that none of them has. So a search runs in pieces, and touches only the file of its segment: it
can be finished on another thread.

    searches = search_by_timestamp(log, timestamp)    belongs to the log's thread
    search = next(searches)                           must be finished, on any thread, before the next one
"""

import os
from collections.abc import Generator
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.records.compression import MAX_DECOMPRESSED_BYTES
from barnabas.protocol.records.errors import InvalidRecords
from barnabas.protocol.records.record import int64
from barnabas.protocol.records.scan import RecordScan, ScannedRecord
from barnabas.storage.inspection import BYTES_PER_UNIT, UNITS
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment


class FoundOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int


# The segments whose latest timestamps are read before a pause: each may have to open a file.
_SEGMENTS_AT_ONCE: Final = 100


class TimeSearch:
    def __init__(self, segment: Segment, start: int, timestamp: int, min_offset: int) -> None:
        """Search from about `start` on for a record at or after both `timestamp` and `min_offset`."""
        # Before taking the handle: this may open a file, and make the segment drop its handle.
        self._headers = segment.headers_near(start)
        self.found: FoundOffset | None = None
        self.finished = False
        self._timestamp = timestamp
        self._min_offset = min_offset
        self._handle = segment.handle
        # The batch that may hold the record: its position, then its contents.
        self._candidate: tuple[int, BatchHeader] | None = None
        self._scan: RecordScan | None = None

    def advance(self, units: int = UNITS, room: int = MAX_DECOMPRESSED_BYTES) -> int:
        """Do about `units` more, unless that would read or decompress over `room` bytes. Returns the units left."""
        while not self.finished and units > 0:
            used = self._step(units, room)
            if not used:
                break
            units -= used
        return units

    def _step(self, units: int, room: int) -> int:
        """Returns the units it took: 0 if there is not enough room."""
        if self._candidate is None:
            return self._find_candidate(units)
        position, header = self._candidate
        scan = self._scan
        if scan is None:
            if header.size > room:
                return 0
            batch = memoryview(os.pread(self._handle.fd, header.size, position))
            self._scan = RecordScan(batch, header)
            return 1 + header.size // BYTES_PER_UNIT
        needed = scan.room_needed
        if needed > room:
            return 0
        if needed:
            scan.decompress()
            return needed // BYTES_PER_UNIT
        records = scan.next_records(units)
        self._look_at(records, header)
        if scan.finished:
            self._candidate = self._scan = None
        return len(records) + 1

    def _find_candidate(self, units: int) -> int:
        for used in range(1, units + 1):
            batch = next(self._headers, None)
            if batch is None:
                self.finished = True
                return used
            header = batch[1]
            if header.max_timestamp >= self._timestamp and header.last_offset >= self._min_offset:
                self._candidate = batch
                return used
        return units

    def _look_at(self, records: list[ScannedRecord], header: BatchHeader) -> None:
        base_offset, base_timestamp = header.base_offset, header.base_timestamp
        log_append_time = header.max_timestamp if header.is_log_append_time else None
        for offset_delta, timestamp_delta, _ in records:
            timestamp = int64(base_timestamp + timestamp_delta) if log_append_time is None else log_append_time
            offset = base_offset + offset_delta
            if timestamp >= self._timestamp and offset >= self._min_offset:
                if offset > header.last_offset:
                    raise InvalidRecords(f"a record at offset {offset} in a batch that ends at {header.last_offset}")
                self.found = FoundOffset(offset, timestamp, header.partition_leader_epoch)
                self.finished = True
                return


# The generator returns the result. A None instead of a search is a pause.
Searches = Generator[TimeSearch | None, None, FoundOffset | None]


def search_by_timestamp(log: Log, timestamp: int) -> Searches:
    """Search for the first record at or after `timestamp`."""
    for number, segment in enumerate(list(log.segments), 1):
        if segment.max_timestamp >= timestamp:
            start = max(segment.time_index.lookup(timestamp), log.log_start_offset)
            search = TimeSearch(segment, start, timestamp, log.log_start_offset)
            yield search
            if search.found is not None:
                return search.found
        elif number % _SEGMENTS_AT_ONCE == 0:
            yield None
    return None


def search_max_timestamp(log: Log) -> Searches:
    """Search for the first record with the latest timestamp in the log."""
    latest = log.segments.first
    for number, segment in enumerate(list(log.segments), 1):
        if segment.max_timestamp > latest.max_timestamp:
            latest = segment
        if number % _SEGMENTS_AT_ONCE == 0:
            yield None
    if latest.max_timestamp < 0:
        return None
    search = TimeSearch(latest, latest.offset_of_max_timestamp, latest.max_timestamp, log.log_start_offset)
    yield search
    return search.found

"""The work itself: closed segments in, compacted segments out.

It only touches files: those of the sources, which do not change, and new ones beside them, whose names end in
`.cleaned`. If a source disappears meanwhile, the work ends with CleaningAborted.
"""

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import BATCH_LENGTH_POSITION, HEADER_SIZE, LENGTH_OVERHEAD, validate_batch
from barnabas.protocol.records.control import read_end_transaction_marker
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.storage.cleaner.batch_cleaner import BatchCleaner, KeptBatch, SourceBatch
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.pace import Pace
from barnabas.storage.cleaner.plan import CleaningPlan, Source, group_sources
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.errors import CleaningAborted
from barnabas.storage.file_names import (
    CLEANED,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
)
from barnabas.storage.filesystem import Buffer, FileSystem
from barnabas.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.storage.open_files import Handle, OpenFiles
from barnabas.storage.segment import AppendedBatch, Segment

# The size of reads and writes.
_CHUNK_BYTES: Final = 1024 * 1024

_unpack_batch_length = struct.Struct(">i").unpack_from


class CleanedSegment(NamedTuple):
    """A compacted segment, complete and synced, under names that end in `.cleaned`."""

    base_offset: int
    # By file suffix.
    sizes: dict[str, int]
    # The base offsets of its source segments.
    replaces: Sequence[int]


class CleaningStats(NamedTuple):
    # The log is compacted up to here.
    end_offset: int
    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


def clean(plan: CleaningPlan, pace: Pace, file_system: FileSystem) -> Iterator[CleanedSegment | CleaningStats]:
    """Compact segment by segment. Unchanged segments are not yielded. The statistics come last."""
    try:
        yield from _Rewriter(plan, pace, file_system).run()
    except FileNotFoundError as error:
        raise CleaningAborted(f"a segment is gone: {error.filename}") from None


class _Rewriter:
    def __init__(self, plan: CleaningPlan, pace: Pace, file_system: FileSystem) -> None:
        self._plan = plan
        self._pace = pace
        self._file_system = file_system
        self._open_files = OpenFiles(file_system)
        self._records_read = 0
        self._records_kept = 0
        self._bytes_read = 0
        self._bytes_written = 0

    def run(self) -> Iterator[CleanedSegment | CleaningStats]:
        plan = self._plan
        aborted = [*self._read_aborted(), *plan.aborted_later]
        offset_map = self._build_offset_map(aborted)
        end_offset = offset_map.latest_offset + 1
        sources = [source for source in plan.sources if source.base_offset < end_offset]
        aborted_in_segment: list[AbortedTransaction] = []
        batch_cleaner = BatchCleaner(plan, offset_map, aborted, aborted_in_segment.append)
        for group in group_sources(sources, plan.segment_bytes, plan.segment_index_bytes):
            cleaned = self._clean_group(group, batch_cleaner, aborted_in_segment)
            aborted_in_segment.clear()
            if cleaned is not None:
                yield cleaned
        yield CleaningStats(end_offset, self._records_read, self._records_kept, self._bytes_read, self._bytes_written)

    def _read_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers are in the sources."""
        aborted: list[AbortedTransaction] = []
        for source in self._plan.sources:
            size = source.sizes[TRANSACTION_INDEX_SUFFIX]
            if size:
                path = offset_file(self._plan.folder, source.base_offset, TRANSACTION_INDEX_SUFFIX)
                index = TransactionIndex(path, source.base_offset, self._open_files, size)
                aborted += index
                index.drop_handle()
        return aborted

    def _build_offset_map(self, aborted: Sequence[AbortedTransaction]) -> OffsetMap:
        first_dirty_offset = self._plan.first_dirty_offset
        offset_map = OffsetMap(first_dirty_offset, self._plan.dedupe_buffer_size)
        transactions = CleanedTransactions(aborted)
        for source in self._plan.sources:
            if source.end_offset <= first_dirty_offset:
                continue
            for batch in self._read_batches(source):
                header = batch.header
                if header.last_offset < first_dirty_offset:
                    continue
                if offset_map.is_full:
                    offset_map.finish()
                    return offset_map
                if header.is_control:
                    transactions.on_marker(header, read_end_transaction_marker(batch.view, header))
                elif not transactions.on_data(header):
                    offset_map.add(header.base_offset, batch.scan_keys())
                offset_map.latest_offset = header.last_offset
            offset_map.latest_offset = source.end_offset - 1
        offset_map.finish()
        return offset_map

    def _read_batches(self, source: Source) -> Iterator[SourceBatch]:
        """The batches of a segment. Each checksum is verified."""
        handle = Handle(self._file_system, offset_file(self._plan.folder, source.base_offset, LOG_SUFFIX))
        position = 0
        wanted = _CHUNK_BYTES
        while position < source.size:
            remaining = source.size - position
            data = os.pread(handle.fd, min(wanted, remaining), position)
            if len(data) < min(wanted, remaining):
                raise CleaningAborted(f"segment {source.base_offset} was truncated")
            view = memoryview(data)
            at = size = 0
            while at + HEADER_SIZE <= len(data):
                size = LENGTH_OVERHEAD + _unpack_batch_length(data, at + BATCH_LENGTH_POSITION)[0]
                if at + size > len(data):
                    break
                yield SourceBatch(data, at, validate_batch(view, at))
                at += size
            wanted = _CHUNK_BYTES
            if at == 0:
                if not len(data) < size <= remaining:
                    raise CorruptRecords(f"no complete batch at byte {position} of segment {source.base_offset}")
                wanted = size
            position += at
            self._bytes_read += at
            self._pace.took(at)

    def _clean_group(
        self, group: Sequence[Source], batch_cleaner: BatchCleaner, aborted: list[AbortedTransaction]
    ) -> CleanedSegment | None:
        """Merge several segments into one. None if there is only one and it does not change."""
        base_offset = group[0].base_offset
        segment = Segment.create(self._plan.folder, base_offset, self._open_files, suffix=CLEANED)
        try:
            writer = _SegmentWriter(segment, self._plan.index_interval_bytes, self._pace)
            for source in group:
                for batch in self._read_batches(source):
                    self._records_read += batch.header.record_count
                    writer.add(batch, batch_cleaner.clean(batch))
            self._records_kept += writer.records
            if len(group) == 1 and not writer.is_changed:
                segment.unlink()
                return None
            writer.flush()
            for transaction in aborted:
                segment.transaction_index.append(transaction)
            segment.become_inactive()
            self._bytes_written += segment.size
            self._sync(segment, group[-1])
        except BaseException:
            with contextlib.suppress(OSError):
                segment.unlink()
            raise
        segment.drop()
        sizes = {LOG_SUFFIX: segment.size}
        suffixes = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
        for suffix, index in zip(suffixes, segment.indexes, strict=True):
            if index.has_file:
                sizes[suffix] = index.size
        return CleanedSegment(base_offset, sizes, [source.base_offset for source in group])

    def _sync(self, segment: Segment, last: Source) -> None:
        """Sync the files, and keep the time of the last write, which is the age of records without timestamps."""
        written = os.stat(offset_file(self._plan.folder, last.base_offset, LOG_SUFFIX)).st_mtime_ns
        os.utime(segment.handle.fd, ns=(written, written))
        handles = [segment.handle]
        handles += [Handle(self._file_system, index.path) for index in segment.indexes if index.has_file]
        for handle in handles:
            handle.fsync()
        self._file_system.fsync_directory(self._plan.folder)


class _SegmentWriter:
    """Collects batches, and appends many of them to a segment at a time."""

    def __init__(self, segment: Segment, index_interval_bytes: int, pace: Pace) -> None:
        self.records = 0
        self.is_changed = False
        self._segment = segment
        self._index_interval_bytes = index_interval_bytes
        self._pace = pace
        self._buffers: list[Buffer] = []
        self._batches: list[AppendedBatch] = []
        self._size = 0

    def add(self, batch: SourceBatch, kept: KeptBatch | None) -> None:
        if kept is None:
            self.is_changed = True
            return
        self.is_changed |= kept.is_changed
        self.records += kept.record_count
        self._buffers.append(kept.data)
        self._batches.append((batch.header.last_offset, kept.max_timestamp, len(kept.data)))
        self._size += len(kept.data)
        if self._size >= _CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        self._segment.append(self._buffers, self._size, self._batches, self._index_interval_bytes)
        self._pace.took(self._size)
        self._buffers = []
        self._batches = []
        self._size = 0

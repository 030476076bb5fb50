"""A segment: a file of record batches, one after the other, and the indexes beside it.

`<base offset>.log` holds nothing but batches; their offsets rise, and none is below the base offset. Only the last
segment of a log, the active one, grows. After a crash it may end in a batch that is torn: whoever opens the log cuts
that off (storage.recovery). A batch is never changed in place.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from protocol.records.batch import BatchHeader
from storage.batch_scan import BatchPosition, find_batch, scan_headers
from storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
)
from storage.filesystem import Buffer
from storage.indexes.index_file import IndexFile
from storage.indexes.offset_index import OffsetIndex
from storage.indexes.time_index import TimeIndex
from storage.indexes.transaction_index import TransactionIndex
from storage.open_files import Handle, OpenFiles

# Indexes hold offsets relative to the base offset in an int32.
MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_MAX_RECENT: Final = 64


# What a segment must know of a batch to index it: last offset, max timestamp, size. A plain tuple, for it is made on
# every append.
AppendedBatch = tuple[int, int, int]


class FileSlice(NamedTuple):
    """A stretch of a file. As long as somebody holds the slice, its bytes can be read from the handle's descriptor."""

    handle: Handle
    position: int
    size: int


class Segment:
    __slots__ = (
        "_bytes_since_index_entry",
        "_first_timestamp",
        "_handle",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_open_files",
        "_recent",
        "base_offset",
        "created_ms",
        "folder",
        "offset_index",
        "path",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        folder: str,
        base_offset: int,
        open_files: OpenFiles,
        sizes: dict[str, int] | None = None,
        created_ms: int = 0,
        suffix: str = "",
    ) -> None:
        """`sizes` are those of the files that exist, by their ending."""
        sizes = sizes or {}
        self.folder = folder
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.path = offset_file(folder, base_offset, LOG_SUFFIX + suffix)
        self.size = sizes.get(LOG_SUFFIX, 0)
        self._open_files = open_files
        self._handle: Handle | None = None
        self.offset_index = OffsetIndex(
            offset_file(folder, base_offset, OFFSET_INDEX_SUFFIX + suffix),
            base_offset,
            open_files,
            sizes.get(OFFSET_INDEX_SUFFIX),
        )
        self.time_index = TimeIndex(
            offset_file(folder, base_offset, TIME_INDEX_SUFFIX + suffix),
            base_offset,
            open_files,
            sizes.get(TIME_INDEX_SUFFIX),
        )
        self.transaction_index = TransactionIndex(
            offset_file(folder, base_offset, TRANSACTION_INDEX_SUFFIX + suffix),
            base_offset,
            open_files,
            sizes.get(TRANSACTION_INDEX_SUFFIX),
        )
        self._bytes_since_index_entry = 0
        # None: not read from the files yet.
        self._max_timestamp: int | None = None if self.size else -1
        self._offset_of_max_timestamp = base_offset
        self._first_timestamp: int | None = None
        # Where the latest writes went, by the offset at which the log had ended: who reads at its end asks for these.
        self._recent: dict[int, BatchPosition] = {}

    @classmethod
    def create(
        cls, folder: str, base_offset: int, open_files: OpenFiles, now_ms: int = 0, suffix: str = ""
    ) -> "Segment":
        """An empty segment with an empty file, whatever a file of this name may hold."""
        segment = cls(folder, base_offset, open_files, created_ms=now_ms, suffix=suffix)
        handle = segment._open(create=True)
        if os.fstat(handle.fd).st_size:
            open_files.file_system.truncate(handle.fd, 0)
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, size={self.size})"

    @property
    def indexes(self) -> tuple[IndexFile, ...]:
        return self.offset_index, self.time_index, self.transaction_index

    # -- the file

    @property
    def handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            handle = self._open()
        handle.used = True
        return handle

    def _open(self, *, create: bool = False) -> Handle:
        handle = Handle(self._open_files.file_system, self.path, create=create)
        self._open_files.admit(self)
        self._handle = handle
        return handle

    def give_up_idle_handle(self) -> bool:
        handle = self._handle
        if handle is not None and handle.used:
            handle.used = False
            return False
        self._handle = None
        return True

    # -- appending

    def append(self, buffers: Sequence[Buffer], size: int, batches: Sequence[AppendedBatch], interval: int) -> None:
        """Write batches at the end and index them: one entry for about every `interval` bytes.

        OSError leaves the segment as it was.
        """
        handle = self._handle
        if handle is None:
            handle = self._open()
        handle.used = True
        try:
            self._open_files.file_system.write_all(handle.fd, buffers, size, self.size)
        except OSError:
            # What was written lies behind the end and will be overwritten; cutting it off as well is a kindness to a
            # recovery that might come first, and may fail like the write did.
            with contextlib.suppress(OSError):
                self._open_files.file_system.truncate(handle.fd, self.size)
            raise
        for last_offset, max_timestamp, batch_size in batches:
            self.index_batch(last_offset, max_timestamp, batch_size, interval)

    def remember(self, log_end: int, position: int, size: int) -> None:
        """The log had ended with `log_end` when the batch at this position was appended."""
        recent = self._recent
        if len(recent) >= _MAX_RECENT:
            recent.clear()
        recent[log_end] = BatchPosition(position, size)

    def index_batch(self, last_offset: int, max_timestamp: int, batch_size: int, interval: int) -> None:
        """Take note of a batch that stands at the end of what was noted so far."""
        latest = self._max_timestamp
        if latest is None:
            latest = self.max_timestamp
        if max_timestamp > latest:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > interval:
            self.offset_index.append(last_offset, self.size)
            self.time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        if not self.size:
            self._first_timestamp = max_timestamp
        self.size += batch_size
        self._bytes_since_index_entry += batch_size

    def indexes_full(self, max_index_bytes: int) -> bool:
        # The last entry of the time index is kept for when the segment is rolled.
        return self.offset_index.size + 8 > max_index_bytes or self.time_index.size + 24 > max_index_bytes

    def become_inactive(self) -> None:
        """The segment is complete: let the time index end in its latest time, and write the indexes."""
        self.finish_time_index()
        for index in self.indexes:
            index.become_inactive()

    @property
    def indexes_are_sound(self) -> bool:
        """Whether the files are there and hold whole entries."""
        if self.size == 0:
            return all(index.size == 0 for index in self.indexes)
        return (
            self.offset_index.has_file
            and self.time_index.has_file
            and all(index.size % index.ENTRY_SIZE == 0 for index in self.indexes)
        )

    def save_indexes(self) -> list[IndexFile]:
        """Bring the index files up to date, and give those that are to be synced."""
        for index in self.indexes:
            index.save()
        return [index for index in self.indexes if not index.synced]

    def sync_indexes(self) -> None:
        """Bring the index files to disk, at once."""
        file_system = self._open_files.file_system
        for index in self.save_indexes():
            Handle(file_system, index.path).fsync()
            index.synced = True
        file_system.fsync_directory(self.folder)

    def finish_time_index(self) -> None:
        if self._max_timestamp is not None:
            self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)

    # -- reading

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp in the segment, -1 if there is none."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch that has the latest timestamp."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last()
        return self._offset_of_max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """What retention goes by: where no record has a timestamp, the time of the last write."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return os.stat(self.path).st_mtime_ns // 1_000_000

    @property
    def first_timestamp(self) -> int | None:
        """The latest timestamp in the first batch, from which the segment's age is counted. None if it is empty."""
        if self._first_timestamp is None and self.size:
            for _, header in self.headers():
                self._first_timestamp = header.max_timestamp
                break
        return self._first_timestamp

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from a position on, each as its position and header."""
        return scan_headers(self.handle, position, self.size) if position < self.size else iter(())

    def locate(self, offset: int) -> BatchPosition | None:
        """The first batch whose last offset is `offset` or later."""
        recent = self._recent.get(offset)
        if recent is not None:
            return recent
        position = self.offset_index.lookup(
            offset
        )  # first, for it may open a file, and the handle be given up for that
        return find_batch(self.handle, position, self.size, offset)

    def read_batch(self, position: int, header: BatchHeader) -> memoryview:
        return memoryview(os.pread(self.handle.fd, header.size, position))

    def read_next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on."""
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index.last()[1]):
            next_offset = header.next_offset
        return next_offset

    # -- changing whole files

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that holds `offset`, and all after it."""
        found = self.locate(offset)
        if found is None:
            return
        self._open_files.file_system.truncate(self.handle.fd, found.position)
        self.size = found.position
        self._recent.clear()
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if found.position == 0:
            self._first_timestamp = None
        self.recount()

    def recount(self) -> None:
        """Find the latest timestamp again, and how much was written since the last index entry."""
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last()
        start = self.offset_index.last()[1]
        for _, header in self.headers(start):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
        self._bytes_since_index_entry = self.size - start

    def rename(self, old_suffix: str, new_suffix: str) -> None:
        """Change what is added to the files' names. The indexes go first: a log without them can have them rebuilt."""
        for index in self.indexes:
            index.rename(index.path.removesuffix(old_suffix) + new_suffix)
        path = self.path.removesuffix(old_suffix) + new_suffix
        self._open_files.file_system.rename(self.path, path)
        self.path = path

    def drop(self) -> list[str]:
        """Forget the files, whose paths are given back. Slices that readers hold stay readable."""
        self._handle = None
        self._open_files.forget(self)
        paths = [self.path]
        for index in self.indexes:
            index.drop_handle()
            if index.has_file:
                paths.append(index.path)
        return paths

    def unlink(self) -> None:
        for path in self.drop():
            self._open_files.file_system.unlink(path)

    # -- recovery

    def begin_again(self) -> None:
        """Forget what is known of the file, which is about to be read again from its beginning."""
        self.size = 0
        self._bytes_since_index_entry = 0
        self._max_timestamp = -1
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None

    def cut_file(self) -> None:
        """Cut off what the file has beyond the segment's size."""
        self._open_files.file_system.truncate(self.handle.fd, self.size)

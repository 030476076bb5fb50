"""A segment: a file of consecutive record batches, and its indexes.

`<base offset>.log` holds only batches; their offsets ascend, and none is below the base offset. Only the last segment
of a log, the active one, grows. After a crash it may end in a torn batch, which is cut off when the log is opened
(barnabas.storage.recovery). A batch is never changed in place.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import structlog

from barnabas.protocol.records.batch import BatchHeader
from barnabas.storage.batch_scan import BatchPosition, find_batch, last_offset_at, scan_headers
from barnabas.storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
)
from barnabas.storage.filesystem import Buffer
from barnabas.storage.indexes.index_file import IndexFile
from barnabas.storage.indexes.offset_index import OffsetIndex
from barnabas.storage.indexes.time_index import TimeIndex
from barnabas.storage.indexes.transaction_index import TransactionIndex
from barnabas.storage.open_files import Handle, OpenFiles

logger = structlog.get_logger(__name__)

# Indexes store offsets relative to the base offset, as int32.
MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_MAX_RECENT: Final = 64

# The bytes of log between two index entries, for an index that is rebuilt while the log is in use.
_REBUILT_INTERVAL: Final = 4096


# What a segment needs to index a batch: last offset, max timestamp, size. A plain tuple, because every append creates
# one.
AppendedBatch = tuple[int, int, int]


class FileSlice(NamedTuple):
    """Part of a file. While the slice exists, its bytes can be read from the handle's descriptor."""

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
        """`sizes` has the sizes of the existing files, by suffix."""
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
        # The positions of the latest writes, by the log end offset before them, for readers at the end of the log.
        self._recent: dict[int, BatchPosition] = {}

    @classmethod
    def create(
        cls, folder: str, base_offset: int, open_files: OpenFiles, now_ms: int = 0, suffix: str = ""
    ) -> "Segment":
        """An empty segment. An existing file of this name is emptied."""
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
        """Append batches and index them: about one entry per `interval` bytes.

        After an OSError the segment is unchanged.
        """
        handle = self._handle
        if handle is None:
            handle = self._open()
        handle.used = True
        try:
            self._open_files.file_system.write_all(handle.fd, buffers, size, self.size)
        except OSError:
            # Anything written is after the end and will be overwritten. Truncating it too helps a recovery that might
            # come first. It may fail as the write did.
            with contextlib.suppress(OSError):
                self._open_files.file_system.truncate(handle.fd, self.size)
            raise
        for last_offset, max_timestamp, batch_size in batches:
            self.index_batch(last_offset, max_timestamp, batch_size, interval)

    def remember(self, log_end: int, position: int, size: int) -> None:
        """The log ended at `log_end` before the batch at this position was appended."""
        recent = self._recent
        if len(recent) >= _MAX_RECENT:
            recent.clear()
        recent[log_end] = BatchPosition(position, size)

    def index_batch(self, last_offset: int, max_timestamp: int, batch_size: int, interval: int) -> None:
        """Index a batch that follows the batches indexed so far."""
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
        # The last slot of the time index is reserved for when the segment is rolled.
        return self.offset_index.size + 8 > max_index_bytes or self.time_index.size + 24 > max_index_bytes

    def become_inactive(self) -> None:
        """The segment is complete: add its latest time to the time index, and write the indexes."""
        self.finish_time_index()
        for index in self.indexes:
            index.become_inactive()

    @property
    def indexes_are_sound(self) -> bool:
        """Whether the files exist and consist of complete entries."""
        if self.size == 0:
            return all(index.size == 0 for index in self.indexes)
        return (
            self.offset_index.has_file
            and self.time_index.has_file
            and all(index.size % index.ENTRY_SIZE == 0 for index in self.indexes)
        )

    def save_indexes(self) -> list[IndexFile]:
        """Write the index files, and return those that must be synced."""
        for index in self.indexes:
            index.save()
        return [index for index in self.indexes if not index.synced]

    def sync_indexes(self) -> None:
        """Write and sync the index files."""
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
            self._max_timestamp = self._read_max_timestamp()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch that has the latest timestamp."""
        if self._max_timestamp is None:
            self._max_timestamp = self._read_max_timestamp()
        return self._offset_of_max_timestamp

    def _read_max_timestamp(self) -> int:
        """The latest timestamp by the time index. Retention relies on it, so a damaged index must be detected."""
        timestamp, offset = self.time_index.last()
        if self.time_index.size and not self._has_batch(offset, timestamp):
            self.rebuild_lookup_indexes()
            timestamp, offset = self.time_index.last()
        self._offset_of_max_timestamp = offset
        return timestamp

    @property
    def largest_timestamp(self) -> int:
        """The timestamp for retention: if no record has one, the time of the last write."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return os.stat(self.path).st_mtime_ns // 1_000_000

    @property
    def first_timestamp(self) -> int | None:
        """The latest timestamp in the first batch, which determines the segment's age. None if the segment is empty."""
        if self._first_timestamp is None and self.size:
            for _, header in self.headers():
                self._first_timestamp = header.max_timestamp
                break
        return self._first_timestamp

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from a position on, each as its position and header."""
        return scan_headers(self.handle, position, self.size) if position < self.size else iter(())

    def headers_near(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """The batches from the one that holds `offset` on, or from slightly earlier."""
        return self.headers(self._position_near(offset))

    def locate(self, offset: int) -> BatchPosition | None:
        """The first batch whose last offset is `offset` or later."""
        recent = self._recent.get(offset)
        if recent is not None:
            return recent
        # Before taking the handle: this may open a file, and make the segment drop its handle.
        position = self._position_near(offset)
        return find_batch(self.handle, position, self.size, offset)

    def _position_near(self, offset: int) -> int:
        """Where to begin looking for `offset`, according to the index.

        The index may be damaged. An entry is trusted if the batch agrees with it; otherwise the index is rebuilt.
        """
        last_offset, position = self.offset_index.lookup(offset)
        if position and not self._ends_with(position, last_offset):
            self.rebuild_lookup_indexes()
            last_offset, position = self.offset_index.lookup(offset)
        return position

    def _ends_with(self, position: int, offset: int) -> bool:
        """Whether there is a batch at a position whose last offset is this one."""
        return 0 < position < self.size and last_offset_at(self.handle, position) == offset

    def rebuild_lookup_indexes(self) -> None:
        """Rebuild the offset index and the time index from the log."""
        logger.warning("index rebuilt", path=self.offset_index.path)
        size = self.size
        headers = [header for _, header in self.headers()]
        self.offset_index.reset()
        self.time_index.reset()
        self.begin_again()
        for header in headers:
            self.index_batch(header.last_offset, header.max_timestamp, header.size, _REBUILT_INTERVAL)
        self.size = size
        self.finish_time_index()
        # If this fails, they stay in memory, and are written at the next flush or rebuilt again.
        with contextlib.suppress(OSError):
            self.save_indexes()

    def lookup_indexes_fit(self) -> bool:
        """Whether the last index entries, after which a growing segment adds more, agree with the log."""
        if self.offset_index.size and not self._ends_with(*reversed(self.offset_index.last())):
            return False
        timestamp, offset = self.time_index.last()
        if self.time_index.size and not self._has_batch(offset, timestamp):
            return False
        return not self.transaction_index.size or self.transaction_index.last_offset() is not None

    def _has_batch(self, offset: int, max_timestamp: int) -> bool:
        """Whether the batch that holds `offset` has this timestamp."""
        for _, header in self.headers_near(offset):
            if header.last_offset >= offset:
                return header.base_offset <= offset and header.max_timestamp == max_timestamp
        return False

    def read_batch(self, position: int, header: BatchHeader) -> memoryview:
        return memoryview(os.pread(self.handle.fd, header.size, position))

    def read_next_offset(self) -> int:
        """The offset after the last batch, searched from the last index entry on."""
        next_offset = self.base_offset
        for _, header in self.headers(self.offset_index.last()[1]):
            next_offset = header.next_offset
        return next_offset

    # -- changing whole files

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset`, and everything after it."""
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
        """Recompute the latest timestamp and the bytes since the last index entry."""
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last()
        start = self.offset_index.last()[1]
        for _, header in self.headers(start):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset
        self._bytes_since_index_entry = self.size - start

    def rename(self, old_suffix: str, new_suffix: str) -> None:
        """Change the suffix of the files. The indexes go first, because a log without indexes can rebuild them."""
        for index in self.indexes:
            index.rename(index.path.removesuffix(old_suffix) + new_suffix)
        path = self.path.removesuffix(old_suffix) + new_suffix
        self._open_files.file_system.rename(self.path, path)
        self.path = path

    def drop(self) -> list[str]:
        """Release the files and return their paths. Slices that readers hold stay readable."""
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
        """Reset what is known about the file, because it will be read again from its beginning."""
        self.size = 0
        self._bytes_since_index_entry = 0
        self._max_timestamp = -1
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None

    def cut_file(self) -> None:
        """Truncate the file to the segment's size."""
        self._open_files.file_system.truncate(self.handle.fd, self.size)

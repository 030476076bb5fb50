"""What the three kinds of index have in common: a sorted file of fixed-size entries that only grows at its end.

While its segment is active, an index grows in memory and is written when the segment is flushed, rolled or closed;
after a crash it is rebuilt from the log anyway. Otherwise it is mapped into memory on demand.
"""

import mmap
from typing import ClassVar, Final

from barnabas.storage.errors import CorruptFile
from barnabas.storage.open_files import MappedHandle, OpenFiles

_NO_FILE: Final = -1


class IndexFile:
    ENTRY_SIZE: ClassVar[int]
    # Whether an index without entries has a file.
    EXISTS_EMPTY: ClassVar[bool] = True

    __slots__ = ("_growing", "_handle", "_open_files", "_saved", "base_offset", "path", "size", "synced")

    def __init__(self, path: str, base_offset: int, open_files: OpenFiles, size: int | None = None) -> None:
        """`size` is the file's size; None if there is no file."""
        self.path = path
        self.base_offset = base_offset
        self.size = size or 0
        self._open_files = open_files
        self._handle: MappedHandle | None = None
        # All entries while the index grows. The file holds the first `_saved` bytes.
        self._growing: bytearray | None = bytearray() if size is None else None
        self._saved = _NO_FILE if size is None else size
        self.synced = True

    @property
    def entries(self) -> int:
        return self.size // self.ENTRY_SIZE

    @property
    def has_file(self) -> bool:
        return self._saved != _NO_FILE

    def _data(self) -> bytes | bytearray | mmap.mmap:
        if self._growing is not None:
            return self._growing
        handle = self._handle
        if handle is None:
            handle = MappedHandle(self.path)
            if len(handle.data) < self.size:
                raise CorruptFile(f"{self.path} has {len(handle.data)} bytes instead of {self.size}")
            self._open_files.admit(self)
            self._handle = handle
        handle.used = True
        return handle.data

    def contents(self) -> bytes:
        """All entries, as encoded in the file."""
        return bytes(self._data()[: self.size]) if self.size else b""

    def give_up_idle_handle(self) -> bool:
        handle = self._handle
        if handle is not None and handle.used:
            handle.used = False
            return False
        self._handle = None
        return True

    def _grow(self) -> bytearray:
        if self._growing is None:
            self._growing = bytearray(self._data()[: self.size])
            self.drop_handle()
        return self._growing

    def drop_handle(self) -> None:
        self._handle = None
        self._open_files.forget(self)

    def _append_entry(self, entry: bytes) -> None:
        growing = self._growing
        if growing is None:
            growing = self._grow()
        growing += entry
        self.size += self.ENTRY_SIZE

    def truncate_entries(self, entries: int) -> None:
        size = entries * self.ENTRY_SIZE
        if size < self.size:
            del self._grow()[size:]
            self.size = size
            self._cut_file(size)

    def reset(self) -> None:
        """Start over without entries, whatever the file holds, for a rebuild."""
        self.drop_handle()
        self._growing = bytearray()
        self.size = 0
        self._cut_file(0)

    def _cut_file(self, size: int) -> None:
        if self._saved <= size:
            return
        file_system = self._open_files.file_system
        fd = file_system.open(self.path)
        try:
            file_system.truncate(fd, size)
        finally:
            file_system.close(fd)
        self._saved = size
        self.synced = False

    def save(self) -> None:
        """Write new entries to the file, without syncing it."""
        growing = self._growing
        if growing is None or self._saved == self.size or (not growing and not self.EXISTS_EMPTY):
            return
        file_system = self._open_files.file_system
        fd = file_system.open(self.path, create=True)
        try:
            if not self.has_file:
                # A process that was killed while it compacted may have left one, with more entries than this one has.
                file_system.truncate(fd, 0)
            start = max(self._saved, 0)
            if start < self.size:
                file_system.write_all(fd, [bytes(growing[start:])], self.size - start, start)
        finally:
            file_system.close(fd)
        self._saved = self.size
        self.synced = False

    def become_inactive(self) -> None:
        """No more entries will be added: write the file and drop the copy in memory."""
        self.save()
        if self.has_file:
            self._growing = None

    def rename(self, path: str) -> None:
        if self.has_file:
            self._open_files.file_system.rename(self.path, path)
        self.path = path

"""File descriptors: opened on demand, and limited in number.

A log may have more segments than the process may open files. A holder (a segment or an index) keeps a handle until
others need the room. The handle itself lives as long as something refers to it: a slice that a reader holds keeps its
file readable even if the segment has been closed or deleted meanwhile.
"""

import mmap
import os
from typing import Final, Protocol

from barnabas.storage.filesystem import FileSystem

_MOST_HANDLES: Final = 4096


class Handle:
    """An open file. It closes when the last reference to it is dropped.

    Compiled code drops a variable after its last use, not at the end of the function. So the only owner of a handle
    must call its methods and not extract the descriptor.
    """

    __slots__ = ("_file_system", "fd", "path", "used")

    def __init__(self, file_system: FileSystem, path: str, *, create: bool = False) -> None:
        self.fd = -1
        self.used = True
        self.path = path
        self._file_system = file_system
        self.fd = file_system.open(path, create=create)

    def fileno(self) -> int:
        return self.fd

    def fsync(self) -> None:
        self._file_system.fsync(self.fd)

    def __del__(self) -> None:
        if self.fd >= 0:
            self._file_system.close(self.fd)


class MappedHandle:
    """A file mapped into memory."""

    __slots__ = ("data", "used")

    def __init__(self, path: str) -> None:
        self.used = True
        self.data: mmap.mmap | bytes = b""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_size:
                self.data = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        finally:
            os.close(fd)


class Holder(Protocol):
    """Marks its handle whenever it uses it. On every append and read, that is cheaper than maintaining an order."""

    def give_up_idle_handle(self) -> bool:
        """Drop the handle unless it was used since the last call. Returns whether it was dropped."""


def default_capacity() -> int:
    """Half of the files that this process may have open. The rest is for connections, and for files that are open
    briefly."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _MOST_HANDLES
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_HANDLES if allowed == resource.RLIM_INFINITY else min(allowed // 2, _MOST_HANDLES)


class OpenFiles:
    """At most `capacity` handles among all holders. Idle ones are dropped first."""

    def __init__(self, file_system: FileSystem, capacity: int | None = None) -> None:
        self.file_system = file_system
        self.capacity = default_capacity() if capacity is None else capacity
        # Oldest first.
        self._holders: dict[Holder, None] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def admit(self, holder: Holder) -> None:
        """Register a holder that is about to get a handle, and make room for it."""
        holders = self._holders
        while len(holders) >= self.capacity:
            oldest = next(iter(holders))
            del holders[oldest]
            if not oldest.give_up_idle_handle():
                holders[oldest] = None
        holders[holder] = None

    def forget(self, holder: Holder) -> None:
        """The holder has dropped its handle by itself."""
        self._holders.pop(holder, None)

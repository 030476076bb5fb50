"""Descriptors: opened on need, and bounded.

A log may have more segments than the process may have files. What needs a file open (a segment, an index) is a holder:
it keeps a handle while it has one, and gives it up when others need the room. The handle itself lives as long as
anybody refers to it: a slice that a reader holds keeps its file readable though the segment was closed or deleted
meanwhile.
"""

import mmap
import os
from typing import Protocol

from storage.filesystem import FileSystem


class Handle:
    """An open file. It closes when the last reference to it goes.

    Compiled code lets go of a variable after its last use, and not at the end of its function: whoever is the only one
    to hold a handle calls a method of it, and does not take its descriptor out.
    """

    __slots__ = ("_file_system", "fd", "used")

    def __init__(self, file_system: FileSystem, path: str, *, create: bool = False) -> None:
        self.fd = -1
        self.used = True
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
    """A whole file mapped into memory."""

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
    """Marks its handle as used whenever it uses it: on every append and read that is cheaper than to keep an order."""

    def give_up_idle_handle(self) -> bool:
        """Drop the handle, unless it was used since this was last asked. Say whether it was dropped."""


class OpenFiles:
    """At most `capacity` handles among all holders; those in use are the last to go."""

    def __init__(self, file_system: FileSystem, capacity: int = 4096) -> None:
        self.file_system = file_system
        self._capacity = capacity
        # The oldest first.
        self._holders: dict[Holder, None] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def admit(self, holder: Holder) -> None:
        """Count in a holder that is about to get a handle, and make room for it."""
        holders = self._holders
        while len(holders) >= self._capacity:
            oldest = next(iter(holders))
            del holders[oldest]
            if not oldest.give_up_idle_handle():
                holders[oldest] = None
        holders[holder] = None

    def forget(self, holder: Holder) -> None:
        """The holder has dropped its handle of its own accord."""
        self._holders.pop(holder, None)

"""The operating system calls that change something on disk.

Every write, sync, rename and delete goes through one of these objects, so that a test can substitute one that fails,
tears a write, or knows what a crash would have left. Reads do not need this.
"""

import os
from collections.abc import Callable, Sequence

from barnabas.storage.file_names import TEMPORARY

# The maximum number of buffers per writev.
_MAX_BUFFERS = 1024

Buffer = bytes | bytearray | memoryview


class FileSystem:
    def open(self, path: str, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)

    def close(self, fd: int) -> None:
        os.close(fd)

    # Called on every append, so this is the function itself, without a wrapper.
    pwritev: Callable[[int, Sequence[Buffer], int], int] = staticmethod(os.pwritev)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def fsync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def write_all(self, fd: int, buffers: Sequence[Buffer], size: int, position: int) -> None:
        """Write all buffers, `size` bytes in total. After an OSError, any part may have been written."""
        if len(buffers) <= _MAX_BUFFERS:
            written = self.pwritev(fd, buffers, position)
            if written == size:
                return
        # The kernel may write less than requested: because of a limit, a signal, or a disk that is about to be
        # full.
        rest = memoryview(b"".join(buffers))
        written = 0
        while written < size:
            written += self.pwritev(fd, [rest[written:]], position + written)

    def write_file(self, path: str, data: bytes, *, sync: bool) -> None:
        """Write a file in place. For files that can be rebuilt, and whose half-written state is detected."""
        fd = self.open(path, create=True)
        try:
            self.truncate(fd, 0)
            self.write_all(fd, [data], len(data), 0)
            if sync:
                self.fsync(fd)
        finally:
            self.close(fd)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a small file atomically: after a crash it holds either its old contents or all of `data`.

        Without `sync` this holds for a crash of the process, but not of the machine.
        """
        beside = path + TEMPORARY
        self.write_file(beside, data, sync=sync)
        self.rename(beside, path)
        if sync:
            self.fsync_directory(os.path.dirname(path))

    def remove_tree(self, path: str) -> None:
        """Delete a folder and the files in it."""
        for name in os.listdir(path):
            self.unlink(os.path.join(path, name))
        self.rmdir(path)

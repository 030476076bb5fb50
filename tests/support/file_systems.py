"""File systems that show what is done to them, fail where a test says, or hold a sync until it is released."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from barnabas.storage.filesystem import Buffer, FileSystem

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


class WatchedFileSystem(FileSystem):
    """Remembers every write, and fails those to files whose paths contain one of `broken`."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.writes: list[tuple[str, int]] = []  # the path, and how many buffers went out together
        self._paths: dict[int, str] = {}

    def open(self, path: str, *, create: bool = False) -> int:
        fd = super().open(path, create=create)
        self._paths[fd] = path
        return fd

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:  # type: ignore[override]
        path = self._paths[fd]
        if any(part in path for part in self.broken):
            raise NO_SPACE
        self.writes.append((path, len(buffers)))
        return FileSystem.pwritev(fd, buffers, position)

    def writes_to(self, ending: str) -> list[int]:
        """How many buffers went out in each write to files with this ending."""
        return [count for path, count in self.writes if path.endswith(ending)]


class HeldFileSystem(FileSystem):
    """Within `held`, syncs wait until they are released. They happen on worker threads, while the loop continues."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._released = threading.Event()
        self._released.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        self._released.clear()
        self._reached.clear()
        try:
            yield
        finally:  # also if a test fails: no thread is left waiting
            self.release()

    async def reached(self) -> None:
        """Wait until something is being synced."""
        await self._reached.wait()

    def release(self) -> None:
        self._released.set()

    def fsync(self, fd: int) -> None:
        self._loop.call_soon_threadsafe(self._reached.set)
        self._released.wait()
        if self.error is not None:
            raise self.error
        super().fsync(fd)

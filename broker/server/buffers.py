"""Receive buffers, shared by all connections: a connection holds one only while it has bytes to process."""

from __future__ import annotations

import mmap
from typing import Final

from barnabas.broker.server.freeing import let_go_of_memory

# Small, because a thousand connections may each hold one in the same turn of the loop; large frames grow theirs.
SMALLEST: Final = 32 * 1024
_SMALL: Final = 1024 * 1024
# How much memory the pool keeps.
_KEPT_BYTES: Final = 64 * 1024 * 1024
# Memory that no other process can share is quicker to get and to give back.
_PRIVATE: Final = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class BufferPool:
    """Buffers whose sizes are powers of two, last in first out, so that the next one in use is a warm one.

    They are handed out as views that live as long as they do, because creating a view costs something.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[memoryview]] = {}
        self._free_bytes = 0

    def take(self, size: int = SMALLEST) -> memoryview:
        """A buffer of at least `size` bytes, with whatever its last user left in it."""
        size = max(SMALLEST, 1 << (size - 1).bit_length())
        free = self._free.get(size)
        if not free:
            # Python would fill a large buffer with zeros first. The system does so page by page, as bytes arrive.
            return memoryview(bytearray(size) if size <= _SMALL else mmap.mmap(-1, size, **_PRIVATE))
        self._free_bytes -= size
        return free.pop()

    def give(self, buffer: memoryview) -> None:
        """Take back a buffer that is no longer in use."""
        size = len(buffer)
        if self._free_bytes + size <= _KEPT_BYTES:
            self._free_bytes += size
            self._free.setdefault(size, []).append(buffer)
        else:
            _drop(buffer)

    def trim(self) -> None:
        """Free the buffers that large frames needed."""
        for size in [size for size in self._free if size > SMALLEST]:
            buffers = self._free.pop(size)
            self._free_bytes -= size * len(buffers)
            for buffer in buffers:
                _drop(buffer)


def _drop(buffer: memoryview) -> None:
    if isinstance(buffer.obj, mmap.mmap):
        let_go_of_memory(buffer.obj)

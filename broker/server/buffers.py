"""Receive buffers, shared by all connections: a connection holds one only while it has bytes to look at."""

from __future__ import annotations

from typing import Final

# Small, because a thousand connections may each hold one in the same turn of the loop; large frames grow theirs.
SMALLEST: Final = 32 * 1024
# What lies in the pool for the next taker.
_KEPT_BYTES: Final = 64 * 1024 * 1024


class BufferPool:
    """Buffers whose sizes are powers of two, last in first out, so that the next taker gets one that is warm.

    They are handed out as views, which live as long as they do: everybody needs one, and making it costs something.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[memoryview]] = {}
        self._free_bytes = 0

    def take(self, size: int = SMALLEST) -> memoryview:
        """A buffer of at least `size` bytes, with whatever its last user left in it."""
        size = max(SMALLEST, 1 << (size - 1).bit_length())
        free = self._free.get(size)
        if not free:
            return memoryview(bytearray(size))
        self._free_bytes -= size
        return free.pop()

    def give(self, buffer: memoryview) -> None:
        """Take back a buffer that nothing reads or writes any more."""
        size = len(buffer)
        if self._free_bytes + size <= _KEPT_BYTES:
            self._free_bytes += size
            self._free.setdefault(size, []).append(buffer)

    def trim(self) -> None:
        """Let go of what large frames needed once."""
        for size in [size for size in self._free if size > SMALLEST]:
            self._free_bytes -= size * len(self._free.pop(size))

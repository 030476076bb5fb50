"""Large things are let go of in pieces.

The last reference to a list of a hundred thousand objects, or to a buffer of a hundred megabytes, takes tens of
milliseconds to drop, and nobody is served meanwhile.
"""

from __future__ import annotations

import asyncio
import mmap
from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final
from weakref import WeakKeyDictionary

_SECONDS_PER_TURN: Final = 0.001
_OBJECTS_PER_STEP: Final = 16
BYTES_PER_STEP: Final = 1024 * 1024

_under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[Iterator[None]]] = WeakKeyDictionary()


class LongList(list[Any]):
    """A list whose elements are let go of in pieces when nobody has the list any more."""

    __slots__ = ()

    def __del__(self) -> None:
        if len(self) > _OBJECTS_PER_STEP:
            let_go_of(self[:])


def let_go_of(elements: list[Any]) -> None:
    """Drop these references a few at a time; the caller keeps no other."""
    _begin(_dropped(elements))


def let_go_of_memory(mapping: mmap.mmap) -> None:
    """Give the system back the memory of a buffer that nobody uses any more."""
    if hasattr(mmap, "MADV_DONTNEED"):  # elsewhere it goes at once
        _begin(_emptied(mapping))


def _dropped(elements: list[Any]) -> Iterator[None]:
    while elements:
        del elements[-_OBJECTS_PER_STEP:]
        yield


def _emptied(mapping: mmap.mmap) -> Iterator[None]:
    for start in range(0, len(mapping), BYTES_PER_STEP):
        mapping.madvise(mmap.MADV_DONTNEED, start, min(BYTES_PER_STEP, len(mapping) - start))
        yield


def _begin(steps: Iterator[None]) -> None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # nobody waits
    under_way = _under_way.get(loop)
    if under_way is None:
        under_way = _under_way[loop] = deque()
        loop.call_soon(_turn, loop, under_way)
    under_way.append(steps)


def _turn(loop: asyncio.AbstractEventLoop, under_way: deque[Iterator[None]]) -> None:
    end = perf_counter() + _SECONDS_PER_TURN
    while under_way:
        for _ in under_way[0]:
            if perf_counter() >= end:
                loop.call_soon(_turn, loop, under_way)
                return
        under_way.popleft()
    del _under_way[loop]

"""Work whose length depends on the request, done in pieces so that it does not make a turn of the loop long.

Such work is a generator that yields after each small step and returns its result. What does not fit into the first
piece continues in the next turns, in which all work under way shares a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Hashable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Final, TypeVar

import structlog

from barnabas.broker.server.freeing import LongList

log = structlog.get_logger()

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
Steps = Generator[None, None, T]

# A request that is done within its first piece is answered in the turn in which it came.
_SECONDS_PER_PIECE: Final = 0.001
_SECONDS_PER_TURN: Final = 0.005


class Pieces:
    """All work of a loop that is done in pieces."""

    def __init__(self) -> None:
        self._under_way: deque[Steps[None]] = deque()
        self._scheduled = False

    @property
    def are_under_way(self) -> bool:
        return bool(self._under_way)

    def begin(self, steps: Steps[None]) -> None:
        """Do a first piece now, and the rest in turns to come. `steps` handles its own failures."""
        if not _piece(steps):
            self.go_on_with(steps)

    def go_on_with(self, steps: Steps[None]) -> None:
        """Do the rest of what is under way in turns to come, behind the others."""
        self._under_way.append(steps)
        self._schedule()

    async def result(self, steps: Steps[T]) -> T:
        """The result of `steps`, for a coroutine that can wait for it."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begin(_told(steps, done))
        return await done

    def stop(self) -> None:
        for steps in self._under_way:
            steps.close()
        self._under_way.clear()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        end = perf_counter() + _SECONDS_PER_TURN
        while self._under_way:
            steps = self._under_way.popleft()
            if not _piece(steps):
                self.go_on_with(steps)
            if perf_counter() >= end:
                break
        if self._under_way:
            self._schedule()


def _piece(steps: Steps[None]) -> bool:
    """Do as many steps as fit into a piece; whether that was the last one."""
    end = perf_counter() + _SECONDS_PER_PIECE
    try:
        for _ in steps:
            if perf_counter() >= end:
                return False
    except Exception:
        log.exception("work in pieces failed")
    return True


def _told(steps: Steps[T], done: asyncio.Future[T]) -> Steps[None]:
    """Do the steps, unless nobody waits for them any more, and report their result."""
    try:
        while not done.cancelled():
            try:
                next(steps)
            except StopIteration as end:
                done.set_result(end.value)
                return
            yield
    except Exception as error:
        done.set_exception(error)


def once(work: Callable[[Key], T]) -> Callable[[Key], T]:
    """Does the work once for each key, and returns the same result again. It lives as long as its request."""
    results: dict[Key, T] = {}

    def result(key: Key) -> T:
        if key not in results:
            results[key] = work(key)
        return results[key]

    return result


def parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


async def spread(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, for a coroutine that handles each of them: after each piece, others get their turn."""
    end = perf_counter() + _SECONDS_PER_PIECE
    for item in items:
        yield item
        if perf_counter() >= end:
            await asyncio.sleep(0)
            end = perf_counter() + _SECONDS_PER_PIECE


def each(work: Callable[[Item], T], items: Iterable[Item]) -> Steps[list[T]]:
    """A step for each of the items."""
    results: list[T] = LongList()
    for item in items:
        results.append(work(item))
        yield
    return results

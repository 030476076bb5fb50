"""Work that takes too long for the loop and consists of many small pieces: done on a worker thread, piece by piece.

Python's threads take turns, so a thread that is busy for long slows down the loop. Between two pieces the loop and
other work for the threads get their turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.broker.replica.worker import Worker

# How many jobs run at once, because each may need 64 MiB or more. Their pieces take turns; others wait.
_AT_ONCE: Final = 4

Done = Callable[[Exception | None], None]


class Work(Protocol):
    @property
    def finished(self) -> bool: ...

    def advance(self) -> object:
        """Do the next piece. It touches nothing that belongs to the loop."""


class LongWork:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._waiting: deque[tuple[Work, Done]] = deque()
        self._under_way: deque[tuple[Work, Done]] = deque()
        self._is_running = False  # whether the thread has a piece

    def add(self, work: Work, done: Done) -> None:
        """Finish some work; `done` is called on the loop, with what the work raised, if it did."""
        self._waiting.append((work, done))
        self._begin()

    async def finish(self, work: Work) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.add(work, done)
        await future

    def _begin(self) -> None:
        while self._waiting and len(self._under_way) + self._is_running < _AT_ONCE:
            self._under_way.append(self._waiting.popleft())
        if self._under_way and not self._is_running:
            self._is_running = True
            work, done = self._under_way.popleft()
            self._worker.run(work.advance, lambda outcome: self._went_on(work, done, outcome))

    def _went_on(self, work: Work, done: Done, outcome: object) -> None:
        self._is_running = False
        error = outcome if isinstance(outcome, Exception) else None
        if error is None and not work.finished:
            self._under_way.append((work, done))
            self._begin()
            return
        try:
            done(error)
        finally:
            self._begin()

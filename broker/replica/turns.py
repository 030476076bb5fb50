"""Work in many small steps, a few milliseconds of it a turn of the loop, so that nobody else waits for it for long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

import structlog

from broker.clock import Clock

logger = structlog.get_logger()

# A job as small as this is done at once.
_STEPS_AT_ONCE: Final = 16
_SECONDS_A_TURN: Final = 0.005

Job = Iterator[None]
"""Does one step whenever it is asked for the next."""


class Turns:
    """Jobs, each about something that has a name. Those of one name are done in order; the names take turns."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._jobs: dict[str, deque[Job]] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def add(self, name: str, job: Job) -> None:
        """Begin a job, and finish it if it is small and nothing else of this name is under way."""
        idle = not self._jobs
        jobs = self._jobs.setdefault(name, deque())
        jobs.append(job)
        if len(jobs) == 1:
            for _ in range(_STEPS_AT_ONCE):
                if name not in self._jobs:
                    return
                self._step(name)
        if idle:
            self._loop.call_soon(self._turn)

    async def done(self, name: str) -> None:
        """Wait until nothing of this name is left to do."""
        while name in self._jobs:
            if name not in self._waiting:
                self._waiting[name] = self._loop.create_future()
            await asyncio.shield(self._waiting[name])

    def finish(self) -> None:
        """Do all that is left, however long it takes."""
        while self._jobs:
            self._step(next(iter(self._jobs)))

    def _turn(self) -> None:
        end = self._clock.monotonic() + _SECONDS_A_TURN
        while self._jobs:
            self._step(next(iter(self._jobs)))
            if self._clock.monotonic() >= end:
                self._loop.call_soon(self._turn)
                return

    def _step(self, name: str) -> None:
        jobs = self._jobs.pop(name)
        try:
            next(jobs[0])
        except StopIteration:
            jobs.popleft()
        except Exception:
            logger.exception("work was given up", about=name)
            jobs.popleft()
        if jobs:
            self._jobs[name] = jobs  # behind the others, whose turn it is now
        elif name in self._waiting:
            self._waiting.pop(name).set_result(None)

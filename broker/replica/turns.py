"""Work in many small steps, a few milliseconds of it a turn of the loop, so that nobody else waits for it for long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

import structlog

from broker.clock import Clock

logger = structlog.get_logger()

# So much is done at once in a turn, so that a small job is over when `add` returns.
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
        self._steps_at_once = _STEPS_AT_ONCE
        self._scheduled = False

    def add(self, name: str, job: Job) -> None:
        """Begin a job. It is over at once if it is small and not one of many."""
        jobs = self._jobs.setdefault(name, deque())
        jobs.append(job)
        while self._steps_at_once and self._jobs.get(name) is jobs and jobs[0] is job:
            self._steps_at_once -= 1
            self._step(name)
        self._schedule()

    async def done(self, name: str) -> None:
        """Wait until nothing of this name is left to do."""
        while name in self._jobs:
            if name not in self._waiting:
                self._waiting[name] = self._loop.create_future()
            await asyncio.shield(self._waiting[name])

    @property
    def are_due(self) -> bool:
        return bool(self._jobs)

    def finish(self) -> None:
        """Do all that is left, however long it takes."""
        while self._jobs:
            self._step(next(iter(self._jobs)))

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        self._steps_at_once = _STEPS_AT_ONCE
        end = self._clock.monotonic() + _SECONDS_A_TURN
        while self._jobs:
            self._step(next(iter(self._jobs)))
            if self._clock.monotonic() >= end:
                self._schedule()
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

"""Work in many small steps, a few milliseconds per turn of the loop, so that nobody else has to wait for long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.set_aside import SetAside

# How many steps run immediately, so that a small job is finished when `add` returns, unless they take too long.
_STEPS_AT_ONCE: Final = 16
_SECONDS_PER_TURN: Final = 0.005

Job = Iterator[None]
"""Does one step per `next`."""


class Turns:
    """Named jobs. Those of one name run in order; the names take turns."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, set_aside: SetAside) -> None:
        self._clock = clock
        self._set_aside = set_aside
        self._loop = loop
        self._jobs: dict[str, deque[Job]] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._steps_at_once = _STEPS_AT_ONCE
        self._seconds_at_once = _SECONDS_PER_TURN
        self._scheduled = False

    def add(self, name: str, job: Job) -> None:
        """Start a job. It is finished at once if it is small and not one of many."""
        jobs = self._jobs.setdefault(name, deque())
        jobs.append(job)
        began = self._clock.monotonic()
        spent = 0.0
        while self._steps_at_once and spent < self._seconds_at_once and self._jobs.get(name) is jobs and jobs[0] is job:
            self._steps_at_once -= 1
            self._step(name)
            spent = self._clock.monotonic() - began
        self._seconds_at_once -= spent
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
        """Finish everything, however long it takes."""
        while self._jobs:
            self._step(next(iter(self._jobs)))

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        self._steps_at_once = _STEPS_AT_ONCE
        self._seconds_at_once = _SECONDS_PER_TURN
        end = self._clock.monotonic() + _SECONDS_PER_TURN
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
        except Exception as error:
            self._set_aside.add("topic", name, error)
            jobs.popleft()
        if jobs:
            self._jobs[name] = jobs  # behind the others, whose turn it is
        elif name in self._waiting:
            self._waiting.pop(name).set_result(None)

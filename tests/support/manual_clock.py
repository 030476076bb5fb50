"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class ManualTimer:
    def __init__(self, due: float, delay: float, number: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.delay = delay
        self.number = number
        self.callback = callback
        self.cancelled = False

    def __lt__(self, other: ManualTimer) -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """A broker.clock.Clock. Callbacks are called by `advance`, in the order in which they fall due."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed = 0.0
        self._timers: list[ManualTimer] = []  # a heap
        self._numbers = count()
        self._awaited: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self._elapsed + delay, delay, next(self._numbers), callback)
        heappush(self._timers, timer)
        for awaited, future in self._awaited:
            if awaited == delay and not future.done():
                future.set_result(None)
        return timer

    def put(self, seconds: float) -> None:
        """Put the wall clock forward, or back. No time passes."""
        self._start_ms += round(seconds * 1000)

    def advance(self, seconds: float) -> None:
        """Let time pass, and call everything that falls due."""
        end = self._elapsed + seconds
        while self._timers and self._timers[0].due <= end:
            timer = heappop(self._timers)
            if not timer.cancelled:
                self._elapsed = max(self._elapsed, timer.due)
                timer.callback()
        self._elapsed = end

    def pending(self, delay: float) -> int:
        """How many are still to be called back that asked for this delay."""
        return sum(timer.delay == delay for timer in self._timers if not timer.cancelled)

    async def timer_set(self, delay: float) -> None:
        """Wait until somebody has asked to be called back after exactly this delay."""
        if not self.pending(delay):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.append((delay, future))
            await future

"""A clock that runs as the system's does, and can be moved forward.

`advance` lets everything that falls due on the way happen at once, in order and each at its own time: while a timer's
callback runs, the clock stands at the moment for which the timer was set, and the next one waits until what it caused
has been carried out. So a session of 45 s ends in a millisecond, and its consequences happen at the time at which they
would have happened.

Monotonic and wall time move together. The wall time can be set back, for a broker that has been emptied; the monotonic
time never goes back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import ceil
from typing import Final

from barnabas.broker.clock import Later, Timer

# The most that a scheduled check (retention, compaction, expiry) runs in one advance: at evenly spread times of its
# schedule, and at the last of them. It finds what is due a little later than it might have, but within the advance;
# and an advance by a week takes no longer than one by an hour.
_CHECKS_PER_ADVANCE: Final = 64


class MovedTimer:
    __slots__ = ("_clock", "callback", "due", "number")

    def __init__(self, clock: MovableClock, due: float, number: int, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.due = due
        self.number = number
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._clock.cancelled()

    def __lt__(self, other: MovedTimer) -> bool:
        return (self.due, self.number) < (other.due, other.number)


class MovableClock:
    """A broker.clock.Clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ahead = 0.0  # of the system's monotonic clock, in seconds
        self._wall_ahead_ms = 0  # of the system's wall clock
        self._stands_at: float | None = None  # the monotonic time, while it is moved
        self._wall_when_moved = 0.0  # wall minus monotonic time in milliseconds, while it is moved
        self._target = self._length = 0.0  # of the move
        self._timers: list[MovedTimer] = []  # a heap
        self._numbers = count()
        self._cancelled = 0  # how many of them at most are no longer wanted
        self._wakeup: asyncio.TimerHandle | None = None
        self._moving = asyncio.Lock()

    def now_ms(self) -> int:
        if self._stands_at is not None:
            return round(self._stands_at * 1000 + self._wall_when_moved)
        return time.time_ns() // 1_000_000 + self._wall_ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead if self._stands_at is None else self._stands_at

    @property
    def ahead_ms(self) -> int:
        """How far the wall time is ahead of the system's."""
        if self._stands_at is None:
            return self._wall_ahead_ms
        return self.now_ms() - time.time_ns() // 1_000_000

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        if self._stands_at is not None and isinstance(callback, Later):
            delay *= self._ticks_to_skip(delay)
        timer = MovedTimer(self, self.monotonic() + delay, next(self._numbers), callback)
        heappush(self._timers, timer)
        if self._timers[0] is timer:
            self._watch()
        return timer

    def cancelled(self) -> None:
        """A timer was cancelled. Cancelled timers leave the heap together, when they are most of it."""
        self._cancelled += 1
        if self._cancelled > 1000 and self._cancelled > len(self._timers) // 2:
            self._timers = [timer for timer in self._timers if timer.callback is not None]
            heapify(self._timers)
            self._cancelled = 0

    def _ticks_to_skip(self, interval: float) -> int:
        """The number of intervals after which a check runs again in this advance."""
        now = self.monotonic()
        left = int((self._target - now) / interval) if interval > 0 else 0
        stride = ceil(self._length / interval / _CHECKS_PER_ADVANCE) if interval > 0 else 1
        return max(1, min(left, stride))

    # --- as time passes by itself ---

    def _watch(self) -> None:
        """Wake up when the first timer falls due."""
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None
        if self._timers and self._stands_at is None:
            delay = self._timers[0].due - self.monotonic()
            self._wakeup = self._loop.call_later(max(delay, 0), self._woken)

    def _woken(self) -> None:
        self._wakeup = None
        # Only what was due at wake-up: a callback that asks to be called at once gets the loop's next turn.
        now = self.monotonic()
        while self._stands_at is None and self._timers and self._timers[0].due <= now:
            self._fire(heappop(self._timers))
        self._watch()

    def _fire(self, timer: MovedTimer) -> bool:
        callback, timer.callback = timer.callback, None
        if callback is None:
            return False
        try:
            callback()
        except Exception as error:
            self._loop.call_exception_handler({"message": "a timer's callback failed", "exception": error})
        return True

    # --- when it is moved ---

    async def advance(self, seconds: float, settle: Callable[[], Awaitable[None]]) -> int:
        """Move the clock, and return how many timers fired. `settle` waits for what a timer caused.

        Until this returns, time stands still except for the move itself.
        """
        async with self._moving:
            fired = 0
            now = self.monotonic()
            self._wall_when_moved = self.now_ms() - now * 1000
            self._length, self._target = seconds, now + seconds
            self._stands_at = now
            self._watch()
            try:
                await settle()
                while self._timers and self._timers[0].due <= self._target:
                    timer = heappop(self._timers)
                    self._stands_at = max(self._stands_at, timer.due)
                    if self._fire(timer):
                        fired += 1
                        await settle()
                self._stands_at = self._target
            finally:
                # The time that the move itself took is not lost: the clock is ahead by exactly as much as was asked
                # for.
                moved = self._stands_at - now
                self._stands_at = None
                self._ahead += moved
                self._wall_ahead_ms += round(moved * 1000)
                self._watch()
            return fired

    def set_wall_ahead(self, milliseconds: int) -> None:
        """Set how far the wall time is ahead of the system's."""
        self._wall_ahead_ms = milliseconds

"""Time from one place: the broker takes all its time from a Clock, so that a test can move it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970, as records and answers carry it."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring how long something took."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop's thread after `delay` seconds."""
        ...


def elapsed_ms(clock: Clock) -> int:
    """Milliseconds that go on evenly, for measuring how long ago something was. Wall clocks jump."""
    return int(clock.monotonic() * 1000)


class SystemClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay, callback)


class Later:
    """A scheduled check: each `start` runs it once, an interval later.

    The interval is read each time, since settings may change. It is at least a millisecond: a check that is due
    all the time would keep the loop busy.
    """

    def __init__(self, clock: Clock, interval_ms: Callable[[], int], action: Callable[[], None]) -> None:
        self._clock = clock
        self._interval_ms = interval_ms
        self._action = action
        self._timer: Timer | None = None

    def start(self) -> None:
        self._timer = self._clock.call_later(max(self._interval_ms(), 1) / 1000, self)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __call__(self) -> None:
        self._action()


class Every(Later):
    """A check that runs repeatedly."""

    def __call__(self) -> None:
        self.start()
        self._action()

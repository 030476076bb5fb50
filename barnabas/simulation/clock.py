"""A machine's clock on simulated time: it may be wrong, and may run fast or slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.broker.clock import Timer
from barnabas.simulation.loop import ProcessLoop

# When a simulation begins: 2027-01-01.
EPOCH_MS: Final = 1_798_761_600_000


class SimulatedClock:
    def __init__(self, loop: ProcessLoop, rate: float = 1.0) -> None:
        """`rate` is how fast it runs: 1.01 gains a second in a hundred."""
        self._loop = loop
        self._rate = rate
        self.ahead_ms = 0  # how wrong the wall clock is

    def now_ms(self) -> int:
        return EPOCH_MS + self.ahead_ms + int(self._loop.scheduler.now * self._rate * 1000)

    def monotonic(self) -> float:
        return self._loop.scheduler.now * self._rate

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer: Timer = self._loop.call_later(delay / self._rate, callback)
        return timer

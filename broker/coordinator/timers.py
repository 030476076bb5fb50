"""Timers by key: to schedule one again moves it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from broker.clock import Clock, Timer


class Timers(Protocol):
    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None: ...

    def cancel(self, key: Hashable) -> None: ...


class ClockTimers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[Hashable, Timer] = {}

    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        self.cancel(key)

        def run() -> None:
            del self._timers[key]
            callback()

        self._timers[key] = self._clock.call_later(delay_ms / 1000, run)

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

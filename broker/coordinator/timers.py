"""Timers by key: scheduling one again moves it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from barnabas.broker.clock import Clock, Timer


class Timers(Protocol):
    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None: ...

    def cancel(self, key: Hashable) -> None: ...

    def close(self) -> None:
        """Cancel all, and schedule no more: their owner is gone."""


class ClockTimers:
    def __init__(self, clock: Clock, failed: Callable[[Hashable, Exception], None]) -> None:
        """`failed` gets the key of a timer whose callback raised, and what it raised."""
        self._clock = clock
        self._failed = failed
        self._timers: dict[Hashable, Timer] = {}
        self._closed = False

    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        if self._closed:
            return
        self.cancel(key)

        def run() -> None:
            del self._timers[key]
            try:
                callback()
            except Exception as error:
                self._failed(key, error)

        self._timers[key] = self._clock.call_later(delay_ms / 1000, run)

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

"""Timers by key: scheduling one again moves it. Some only call back; others decide something."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Protocol

from barnabas.broker.clock import Clock, Timer, elapsed_ms
from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorResult
from barnabas.protocol.errors import ErrorCode

# So long after a decision that could not be written, it is made again.
RETRY_MS: Final = 500


class Timers(Protocol):
    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None: ...

    def cancel(self, key: Hashable) -> None: ...

    def is_scheduled(self, key: Hashable) -> bool: ...

    def elapsed_ms(self) -> int:
        """A time that goes on evenly, for measuring how long ago something was. Wall clocks jump."""
        ...

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

    def is_scheduled(self, key: Hashable) -> bool:
        return key in self._timers

    def elapsed_ms(self) -> int:
        return elapsed_ms(self._clock)

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class DecidingTimers:
    """Timers that decide. No client waits for such a decision, and nobody would ask for it again: if it cannot be
    written (too few replicas are in sync), it is made again a little later, unless its timer has been set meanwhile."""

    def __init__(self, timers: Timers, carry_out: Callable[[CoordinatorResult], None]) -> None:
        self._timers = timers
        self._carry_out = carry_out

    def schedule(self, key: Hashable, delay_ms: int, decide: Callable[[], CoordinatorResult]) -> None:
        self._timers.schedule(key, delay_ms, lambda: self._decide(key, decide))

    def cancel(self, key: Hashable) -> None:
        self._timers.cancel(key)

    def elapsed_ms(self) -> int:
        return self._timers.elapsed_ms()

    def _decide(self, key: Hashable, decide: Callable[[], CoordinatorResult]) -> None:
        decision = decide()
        if decision is NOTHING_TO_DO:
            return

        def done(error: ErrorCode) -> None:
            decision.done(error)
            if error and not self._timers.is_scheduled(key):
                self.schedule(key, RETRY_MS, decide)

        self._carry_out(decision._replace(done=done))

"""Whether the disk accepts what brokers append to replicated partitions.

While it does not, other replicas should lead and nobody should wait for this broker: it notes in the registry that its
disk fails, and answers the controller's orders with KAFKA_STORAGE_ERROR, as Apache Kafka does for a log directory that
is offline. It follows nobody meanwhile, because a replica that follows and cannot write would join the in-sync replicas
and make everybody wait. When a file can be written to the disk again, it notes that as well, follows, and catches up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from barnabas.broker.clock import Clock, Later
from barnabas.broker.replica.worker import Worker
from barnabas.storage.log_directory import LogDirectory

log = structlog.get_logger()

# How soon a failing disk is tried again. If it soon fails again, it was tried too early: then the time doubles.
_FIRST_TRY_MS: Final = 1000
_LAST_TRY_MS: Final = 32_000
_SOON_MS: Final = 60_000


class DiskWatch:
    def __init__(
        self, directory: LogDirectory, worker: Worker, clock: Clock, on_change: Callable[[], None] | None
    ) -> None:
        """`on_change` is called when the disk starts to fail, or accepts writes again."""
        self.is_failing = False
        self._directory = directory
        self._worker = worker
        self._clock = clock
        self._on_change = on_change
        self._works_since: float | None = None  # if it has failed before
        self._try_ms = _FIRST_TRY_MS
        self._next_try = Later(clock, lambda: self._try_ms, self._try)
        self._stopped = False

    def failed(self, reason: str) -> None:
        """A write to the disk failed."""
        if self.is_failing or self._stopped or self._on_change is None:
            return
        log.error("the disk fails; other brokers should lead", folder=self._directory.path, reason=reason)
        since = self._works_since
        soon = since is not None and (self._clock.monotonic() - since) * 1000 < _SOON_MS
        self._try_ms = min(2 * self._try_ms, _LAST_TRY_MS) if soon else _FIRST_TRY_MS
        self.is_failing = True
        self._on_change()
        self._next_try.start()

    def stop(self) -> None:
        self._stopped = True
        self._next_try.cancel()

    def _try(self) -> None:
        self._worker.run(self._directory.try_disk, self._tried)

    def _tried(self, outcome: Exception | None) -> None:
        if self._stopped:
            return
        if outcome is not None:
            self._next_try.start()
            return
        log.info("the disk accepts writes again", folder=self._directory.path)
        self.is_failing = False
        self._works_since = self._clock.monotonic()
        if self._on_change is not None:
            self._on_change()

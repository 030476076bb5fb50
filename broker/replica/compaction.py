"""Compaction of logs whose policy asks for it: one log at a time, in steps that run on a worker thread."""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from broker.clock import Later
from broker.config import BrokerConfig
from broker.replica.replicas import Replicas
from storage.cleaner.cleaner import Cleaner, CleanerConfig, Cleaning, Step

log = structlog.get_logger()


class Compaction:
    def __init__(self, config: BrokerConfig, replicas: Replicas) -> None:
        self._config = config
        self._clock = replicas.clock
        self._next_look = Later(self._clock, lambda: config.log_cleaner_backoff_ms, self.look)
        self._worker = replicas.worker
        self._directory = replicas.directory
        self._cleaner = Cleaner(replicas.directory.logs, self._cleaner_config())
        self._cleaning: Cleaning | None = None
        self._stopped = False

    def start(self) -> None:
        self._next_look.start()

    def stop(self) -> None:
        self._stopped = True
        self._next_look.cancel()
        if self._cleaning is not None:
            self._cleaning.stop()

    def look(self) -> None:
        """Compact the log that needs it most; look again later if none does."""
        self._cleaner.config = self._cleaner_config()
        if self._stopped or self._cleaning is not None:
            return
        if self._config.log_cleaner_enable:
            self._cleaning = self._cleaner.choose(self._clock.now_ms())
        if self._cleaning is None:
            self.start()
            return
        cleaning = self._cleaning
        # Compaction leaves gaps. Recovery takes one for a loss unless it lies below the recovery point that is on disk.
        checkpoint = self._directory.start_checkpoint()
        self._worker.run(checkpoint.write, lambda outcome: self._begin(cleaning, outcome))

    def _begin(self, cleaning: Cleaning, outcome: Exception | None) -> None:
        if outcome is None:
            self._advance(cleaning, cleaning.steps())
            return
        log.error("checkpoint could not be written, so nothing is compacted", error=str(outcome))
        self._cleaning = None
        self.start()

    def _advance(self, cleaning: Cleaning, steps: Iterator[Step[object]]) -> None:
        step = next(steps, None)
        if step is not None:
            self._worker.run(step, lambda _: self._advance(cleaning, steps))
            return
        self._cleaning = None
        if cleaning.stats is not None:
            log.info(
                "log compacted",
                partition=str(cleaning.log.topic_partition),
                up_to=cleaning.stats.end_offset,
                records_read=cleaning.stats.records_read,
                records_kept=cleaning.stats.records_kept,
            )
        self.look()

    def _cleaner_config(self) -> CleanerConfig:
        return CleanerConfig(
            dedupe_buffer_size=self._config.log_cleaner_dedupe_buffer_size,
            io_max_bytes_per_second=self._config.log_cleaner_io_max_bytes_per_second,
        )

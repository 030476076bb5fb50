"""Compaction of logs whose policy asks for it: one log at a time, in steps that run on a worker thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import structlog

from barnabas.broker.clock import Later
from barnabas.broker.config import BrokerConfig
from barnabas.broker.replica.replicas import Replicas
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.cleaner.cleaner import Cleaner, CleanerConfig, Cleaning, Step
from barnabas.storage.errors import StorageError

log = structlog.get_logger()

_KIND: Final = "compaction"


class Compaction:
    def __init__(self, config: BrokerConfig, replicas: Replicas) -> None:
        self._config = config
        self._clock = replicas.clock
        self._next_look = Later(self._clock, lambda: config.log_cleaner_backoff_ms, self.look)
        self._worker = replicas.worker
        self._directory = replicas.directory
        self._set_aside = replicas.set_aside
        self._cleaner = Cleaner(replicas.directory.logs, self._cleaner_config())
        self._cleaning: Cleaning | None = None
        self._uncleanable: set[str] = set()
        self._stopped = False

    def start(self) -> None:
        self._next_look.start()

    def stop(self) -> None:
        self._stopped = True
        self._next_look.cancel()
        if self._cleaning is not None:
            self._cleaning.stop()

    def reconfigure(self) -> None:
        """The settings changed. A running compaction at another speed is stopped, and restarted later."""
        changed = self._cleaner_config()
        if changed != self._cleaner.config and self._cleaning is not None:
            self._cleaning.stop()
        self._cleaner.config = changed

    def look(self) -> None:
        """Compact the log that needs it most; check again later if none does."""
        self._cleaner.config = self._cleaner_config()
        if self._stopped or self._cleaning is not None:
            return
        # At a rate of 0 nothing would ever be compacted, so nothing is started.
        if self._config.log_cleaner_enable and self._config.log_cleaner_io_max_bytes_per_second != 0:
            self._cleaning = self._cleaner.choose(self._clock.now_ms())
            self._tell_uncleanable()
        if self._cleaning is None:
            self.start()
            return
        cleaning = self._cleaning
        # Compaction leaves gaps. Recovery treats a gap as a loss unless it is below the recovery point on disk.
        checkpoint = self._directory.start_checkpoint()
        self._worker.run(checkpoint.write, lambda outcome: self._begin(cleaning, outcome))

    def _tell_uncleanable(self) -> None:
        """Show what was set aside, and drop what has been deleted meanwhile."""
        uncleanable = {str(log.topic_partition): error for log, error in self._cleaner.uncleanable.items()}
        for name in self._uncleanable - uncleanable.keys():
            self._set_aside.remove(_KIND, name)
        for name, error in uncleanable.items():
            # Damaged records need no traceback.
            self._set_aside.add(_KIND, name, str(error) if isinstance(error, RecordsError | StorageError) else error)
        self._uncleanable = set(uncleanable)

    def _begin(self, cleaning: Cleaning, outcome: Exception | None) -> None:
        folder = self._directory.path
        if outcome is None:
            self._set_aside.remove("checkpoints", folder)
            self._advance(cleaning, cleaning.steps())
            return
        self._set_aside.add("checkpoints", folder, outcome)
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

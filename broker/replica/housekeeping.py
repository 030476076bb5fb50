"""What a broker does from time to time for its logs: retention, checkpoints, forgetting producers that are gone."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from broker.clock import Timer
from broker.config import BrokerConfig
from broker.replica.replicas import Replicas
from storage.retention import apply_retention

log = structlog.get_logger()


class Housekeeping:
    """Timers on the loop; what may block is handed to the worker."""

    def __init__(self, config: BrokerConfig, replicas: Replicas) -> None:
        self._config = config
        self._replicas = replicas
        self._clock = replicas.clock
        self._timers: dict[Callable[[], None], Timer] = {}

    def start(self) -> None:
        self._every(lambda: self._config.log_retention_check_interval_ms, self.delete_old_segments)
        self._every(lambda: self._config.log_flush_offset_checkpoint_interval_ms, self.write_checkpoints)
        self._every(lambda: self._config.producer_id_expiration_check_interval_ms, self.forget_producers)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _every(self, interval_ms: Callable[[], int], action: Callable[[], None]) -> None:
        """Settings may change: the interval is read anew each time."""

        def act() -> None:
            self._timers[action] = self._clock.call_later(interval_ms() / 1000, act)
            action()

        self._timers[action] = self._clock.call_later(interval_ms() / 1000, act)

    def delete_old_segments(self) -> None:
        now_ms = self._clock.now_ms()
        for partition in self._replicas:
            try:
                deletion = apply_retention(partition.log, now_ms)
            except OSError as error:
                log.error("retention failed", partition=str(partition.log.topic_partition), error=str(error))
                continue
            if deletion is not None:
                delay = partition.log.config.file_delete_delay_ms / 1000
                self._clock.call_later(delay, lambda run=deletion.run: self._replicas.worker.run(run))  # type: ignore[misc]

    def write_checkpoints(self) -> None:
        self._replicas.worker.run(self._replicas.directory.start_checkpoint().write)

    def forget_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for partition in self._replicas:
            partition.log.producer_state.forget_expired(now_ms, self._config.producer_id_expiration_ms)

"""What a broker does from time to time for its logs: retention, checkpoints, forgetting producers that are gone."""

from __future__ import annotations

import structlog

from broker.clock import Every
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
        self._schedule = [
            Every(self._clock, lambda: config.log_retention_check_interval_ms, self.delete_old_segments),
            Every(self._clock, lambda: config.log_flush_offset_checkpoint_interval_ms, self.write_checkpoints),
            Every(self._clock, lambda: config.producer_id_expiration_check_interval_ms, self.forget_producers),
        ]

    def start(self) -> None:
        for each in self._schedule:
            each.start()

    def stop(self) -> None:
        for each in self._schedule:
            each.cancel()

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
        expiration_ms = self._config.producer_id_expiration_ms
        for partition in self._replicas:
            partition.log.producer_state.forget_expired(now_ms, expiration_ms)
            partition.admissions.forget_expired(now_ms, expiration_ms)

"""Periodic work on logs: retention, checkpoints, forgetting expired producers."""

from __future__ import annotations

from functools import partial

from barnabas.broker.clock import Every
from barnabas.broker.config import BrokerConfig
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.server.pieces import Pieces, Steps
from barnabas.storage.flush import PendingDeletion
from barnabas.storage.retention import apply_retention


class Housekeeping:
    """Timers run on the loop, where many logs are looked at in pieces; blocking work goes to the worker.

    A failure of one log is set aside and retried when its timer fires next.
    """

    def __init__(self, config: BrokerConfig, replicas: Replicas, pieces: Pieces) -> None:
        self._config = config
        self._replicas = replicas
        self._pieces = pieces
        self._is_deleting = False
        self._set_aside = replicas.set_aside
        self._clock = replicas.clock
        self._schedule = [
            Every(self._clock, lambda: config.log_retention_check_interval_ms, self.delete_old_segments),
            Every(self._clock, lambda: config.log_flush_offset_checkpoint_interval_ms, self.write_checkpoints),
            Every(self._clock, lambda: config.producer_id_expiration_check_interval_ms, self.forget_producers),
        ]

        # After a crash, a leader with followers cannot know what was committed. One without them need not ask.
        self._high_watermarks = Every(
            self._clock, lambda: config.replica_high_watermark_checkpoint_interval_ms, self.write_checkpoints
        )
        self._saves_high_watermarks = False
        replicas.subscribe_roles(self)

    def start(self) -> None:
        for each in self._schedule:
            each.start()
        for partition in self._replicas:
            self._has_role(partition)

    def stop(self) -> None:
        for each in self._schedule:
            each.cancel()
        self._high_watermarks.cancel()

    def on_leader(self, partition: Partition) -> None:
        self._has_role(partition)

    def on_not_leader(self, partition: Partition) -> None:
        self._has_role(partition)

    def _has_role(self, partition: Partition) -> None:
        if partition.is_replicated and not self._saves_high_watermarks:
            self._saves_high_watermarks = True
            self._high_watermarks.start()

    def delete_old_segments(self) -> None:
        if not self._is_deleting:
            self._is_deleting = True
            self._pieces.begin(self._delete_old_segments())

    def _delete_old_segments(self) -> Steps[None]:
        """Some segments of a log may take milliseconds, because files are closed, renamed and created."""
        try:
            now_ms = self._clock.now_ms()
            for partition in list(self._replicas):
                while not partition.deleted and self._apply_retention(partition, now_ms):
                    yield
                yield
        finally:
            self._is_deleting = False

    def _apply_retention(self, partition: Partition, now_ms: int) -> bool:
        """Remove some expired segments of a log; whether there may be more."""
        name = str(partition.log.topic_partition)
        try:
            deletion = apply_retention(partition.log, now_ms)
        except Exception as error:
            self._set_aside.add("retention", name, error)
            return False
        self._set_aside.remove("retention", name)
        if deletion is None:
            return False
        delay = partition.log.config.file_delete_delay_ms / 1000
        self._clock.call_later(delay, partial(self._delete, name, deletion))
        return True

    def _delete(self, name: str, deletion: PendingDeletion) -> None:
        def done(outcome: Exception | None) -> None:
            if outcome is not None:
                self._set_aside.add("deletion of segments", name, outcome)

        self._replicas.worker.run(deletion.run, done)

    def write_checkpoints(self) -> None:
        self._replicas.worker.run(self._replicas.directory.start_checkpoint().write, self._checkpoints_written)

    def _checkpoints_written(self, outcome: Exception | None) -> None:
        folder = self._replicas.directory.path
        if outcome is None:
            self._set_aside.remove("checkpoints", folder)
        else:
            self._set_aside.add("checkpoints", folder, outcome)

    def forget_producers(self) -> None:
        now_ms = self._clock.now_ms()
        expiration_ms = self._config.producer_id_expiration_ms
        for partition in self._replicas:
            try:
                partition.log.producer_state.forget_expired(now_ms, expiration_ms)
                partition.admissions.forget_expired(now_ms, expiration_ms)
            except Exception as error:
                self._set_aside.add("producers", str(partition.log.topic_partition), error)

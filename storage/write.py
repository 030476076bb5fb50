"""One write to a log: the batches that are written together, and what they change once written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.records.batch import (
    ATTRIBUTES_FIELD,
    CONTROL_FLAG,
    NO_TIMESTAMP,
    BatchHeader,
)
from barnabas.protocol.records.control import read_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.errors import StorageError
from barnabas.storage.filesystem import Buffer
from barnabas.storage.producer_state import AppendOrigin, ProducerUpdate
from barnabas.storage.segment import AppendedBatch

if TYPE_CHECKING:
    from barnabas.storage.log import Log

Refusal = RecordsError | StorageError


class AppendResult(NamedTuple):
    base_offset: int
    last_offset: int
    # -1 if records keep their producer's timestamps. But a duplicate always comes with its latest timestamp, as in
    # Kafka.
    log_append_time: int = NO_TIMESTAMP
    # The batch was already in the log, at these offsets.
    duplicate: bool = False


# Cheaper than the constructor; the values are in field order.
new_append_result: Final = tuple.__new__


class PendingWrite:
    """Batches collected for the active segment. The log does not change before `finish`."""

    __slots__ = ("_batches", "_buffers", "_leader_epoch", "_log", "_update", "next_offset", "size")

    def __init__(self, log: Log, leader_epoch: int) -> None:
        self.next_offset = log.end_offset
        self.size = 0
        self._log = log
        self._leader_epoch = leader_epoch
        self._buffers: list[Buffer] = []
        self._batches: list[AppendedBatch] = []
        self._update: ProducerUpdate | None = None

    def add(self, records: memoryview, batch: AppendedBatch) -> None:
        """Add a batch whose offsets are set."""
        self._buffers.append(records)
        self._batches.append(batch)
        last_offset, _, size = batch
        self.size += size
        self.next_offset = last_offset + 1

    def add_producer(
        self, records: memoryview, header: BatchHeader, origin: AppendOrigin, transaction_version: int
    ) -> AppendResult | None:
        """Check a batch with a producer id against the producer's state. Call `add` afterwards.

        Raises if the batch is refused. If it is already in the log, returns its offsets there; do not add it then.
        """
        update = self._update
        if update is None:
            update = self._update = ProducerUpdate(self._log.producer_state, self._log.admissions)
        if header[ATTRIBUTES_FIELD] & CONTROL_FLAG:
            marker = read_end_transaction_marker(records, header)
            if marker is not None:
                update.add_marker(header, marker, self.next_offset, origin, transaction_version)
            return None
        duplicate = update.add_data(header, self.next_offset, origin)
        if duplicate is None:
            return None
        return AppendResult(duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, duplicate=True)

    def finish(self, results: list[AppendResult | Refusal]) -> None:
        """Write the collected batches, and start over.

        If that fails, the log is unchanged, and the batches of this write and their duplicates get a LogFailure as
        result.
        """
        log = self._log
        if self._buffers:
            segment = log.segments.active
            position = segment.size
            try:
                if self._leader_epoch > log.leader_epochs.latest_epoch:
                    log.leader_epochs.assign(self._leader_epoch, log.end_offset)
                segment.append(self._buffers, self.size, self._batches, log.config.index_interval_bytes)
            except OSError as error:
                failure = log.disk_failure(error)
                for place, result in enumerate(results):
                    if isinstance(result, AppendResult) and result.base_offset >= log.end_offset:
                        results[place] = failure
                self.next_offset = log.end_offset
            except Exception as error:
                log.fail(error)
                raise
            else:
                segment.remember(log.end_offset, position, self._batches[0][2])
                log.end_offset = self.next_offset
                if self._update is not None:
                    self._apply(self._update)
            self._buffers = []
            self._batches = []
            self.size = 0
        self._update = None

    def _apply(self, update: ProducerUpdate) -> None:
        log = self._log
        try:
            for aborted in log.producer_state.apply(update):
                log.segments.active.transaction_index.append(aborted)
        except Exception as error:
            log.fail(error)
            raise
        if log.admissions is not None and (update.started is not None or update.ended is not None):
            for producer_id in (update.started or {}).values():
                log.admissions.started(producer_id)
            for producer_id, epoch in update.ended or ():
                log.admissions.ended(producer_id, epoch)

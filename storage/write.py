"""One write to a log: the batches that go out together, and what they change once they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import CONTROL_FLAG, NO_TIMESTAMP, BatchHeader
from protocol.records.control import read_end_transaction_marker
from protocol.records.errors import RecordsError
from storage.errors import LogFailure, StorageError
from storage.filesystem import Buffer
from storage.producer_state import AppendOrigin, ProducerUpdate
from storage.segment import AppendedBatch

if TYPE_CHECKING:
    from storage.log import Log

Refusal = RecordsError | StorageError


class AppendResult(NamedTuple):
    base_offset: int
    last_offset: int
    # -1 where records keep the time that their producer gave them, except that a batch which was in the log already
    # comes with its latest time in any case, as from Kafka.
    log_append_time: int = NO_TIMESTAMP
    # The batch was in the log already, at these offsets.
    duplicate: bool = False


# Cheaper than the constructor; the values are those of all fields.
new_append_result: Final = tuple.__new__


class PendingWrite:
    """Batches gathered for the active segment. Until `finish` nothing of the log has changed."""

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
        """A batch whose offsets are set."""
        self._buffers.append(records)
        self._batches.append(batch)
        self.size += batch[2]
        self.next_offset = batch[0] + 1

    def add_producer(
        self, records: memoryview, header: BatchHeader, origin: AppendOrigin, transaction_version: int
    ) -> AppendResult | None:
        """Check a batch that has a producer id against what is known of the producer; `add` comes after.

        Raises what is wrong with it. If the batch is in the log already, gives its place there: it is not to be added.
        """
        update = self._update
        if update is None:
            update = self._update = ProducerUpdate(self._log.producer_state, self._log.admissions)
        if header[5] & CONTROL_FLAG:
            marker = read_end_transaction_marker(records, header)
            if marker is not None:
                update.add_marker(header, marker, self.next_offset, origin, transaction_version)
            return None
        duplicate = update.add_data(header, self.next_offset, origin)
        if duplicate is None:
            return None
        return AppendResult(duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, duplicate=True)

    def finish(self, results: list[AppendResult | Refusal]) -> None:
        """Write what was gathered, and begin anew.

        If that fails, the log stays as it was and whatever is not in it has a LogFailure for its result: the batches of
        this write, and repetitions of them.
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
                failure = LogFailure(f"{log.topic_partition}: {error}")
                for place, result in enumerate(results):
                    if isinstance(result, AppendResult) and result.base_offset >= log.end_offset:
                        results[place] = failure
                self.next_offset = log.end_offset
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
        for aborted in log.producer_state.apply(update):
            log.segments.active.transaction_index.append(aborted)
        if log.admissions is not None and (update.started is not None or update.ended is not None):
            for producer_id in (*(update.started or {}).values(), *(update.ended or ())):
                log.admissions.settle(producer_id)

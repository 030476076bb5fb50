"""What a partition knows of the producers that write to it.

For each producer id: its epoch, its last five batches (so that one that is sent again is not appended again), and where
its transaction under way began. All of it follows from the log: `ProducerState` changes only by batches that are in the
log, and a snapshot of it is no more than a shortcut.

Nothing changes before a write has succeeded. Batches are first checked and prepared in a `ProducerUpdate`, which is
then applied or dropped.
"""

from enum import Enum
from typing import Final, NamedTuple

from protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    advance_sequence,
)
from protocol.records.control import ControlType, EndTransactionMarker
from storage.admissions import Admissions
from storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from storage.indexes.transaction_index import AbortedTransaction
from storage.producer_snapshot import SnapshotEntry

_BATCHES_KEPT: Final = 5
_NO_OFFSET: Final = -1
_NO_COORDINATOR_EPOCH: Final = -1
_MAX_SEQUENCE: Final = 0x7FFFFFFF
_new: Final = tuple.__new__


class AppendOrigin(Enum):
    """Who appends: it decides what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    # What a leader has checked already, or an earlier run of this broker.
    REPLICATION = "replication"


class ProducerBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer(NamedTuple):
    producer_epoch: int = NO_PRODUCER_EPOCH
    # The last few, the latest at the end.
    batches: tuple[ProducerBatch, ...] = ()
    last_timestamp: int = -1
    coordinator_epoch: int = _NO_COORDINATOR_EPOCH
    current_transaction_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


_NEW_PRODUCER: Final = Producer()
_NO_TRANSACTIONS: Final[list[CompletedTransaction]] = []


class ProducerState:
    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        # Transactions without an end marker: first offset to producer id. They begin in the order of their offsets.
        self._ongoing: dict[int, int] = {}
        # Transactions whose end marker lies at or above the high watermark: first offset to the marker's offset. A
        # reader of committed records must not pass them yet, since the marker may still be lost with a leader.
        self._unreplicated: dict[int, int] = {}

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction that is not known to be over."""
        first_ongoing = next(iter(self._ongoing), None)
        first_unreplicated = min(self._unreplicated, default=None)
        if first_ongoing is None or first_unreplicated is None:
            return first_unreplicated if first_ongoing is None else first_ongoing
        return min(first_ongoing, first_unreplicated)

    def forget_replicated_transactions(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {
                first_offset: marker_offset
                for first_offset, marker_offset in self._unreplicated.items()
                if marker_offset >= high_watermark
            }

    def forget_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers that were last heard of too long ago and have no transaction under way."""
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.current_transaction_first_offset is None and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    # -- snapshots

    def snapshot(self) -> list[SnapshotEntry]:
        entries = []
        for producer_id, producer in self.producers.items():
            last = producer.batches[-1] if producer.batches else None
            first_offset = producer.current_transaction_first_offset
            entries.append(
                SnapshotEntry(
                    producer_id,
                    producer.producer_epoch,
                    last.last_sequence if last else NO_SEQUENCE,
                    last.last_offset if last else _NO_OFFSET,
                    last.last_offset - last.first_offset if last else 0,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    _NO_OFFSET if first_offset is None else first_offset,
                )
            )
        return entries

    @classmethod
    def of_snapshot(cls, entries: list[SnapshotEntry]) -> "ProducerState":
        state = cls()
        for entry in entries:
            batches: tuple[ProducerBatch, ...] = ()
            if entry.last_offset >= 0:
                first_sequence = NO_SEQUENCE
                if entry.last_sequence != NO_SEQUENCE:
                    first_sequence = advance_sequence(entry.last_sequence, -entry.offset_delta)
                batches = (
                    ProducerBatch(
                        first_sequence,
                        entry.last_sequence,
                        entry.last_offset - entry.offset_delta,
                        entry.last_offset,
                        entry.timestamp,
                    ),
                )
            first_offset = entry.current_transaction_first_offset
            state.producers[entry.producer_id] = Producer(
                entry.producer_epoch,
                batches,
                entry.timestamp,
                entry.coordinator_epoch,
                None if first_offset < 0 else first_offset,
            )
        ongoing = sorted(
            (producer.current_transaction_first_offset, producer_id)
            for producer_id, producer in state.producers.items()
            if producer.current_transaction_first_offset is not None
        )
        state._ongoing = dict(ongoing)
        return state

    def apply(self, update: "ProducerUpdate") -> list[AbortedTransaction]:
        """Make an update's changes, now that its batches are in the log. Gives the transactions that were aborted."""
        self.producers.update(update.producers)
        if update.started is not None:
            self._ongoing.update(update.started)
        aborted: list[AbortedTransaction] = []
        for transaction in update.completed:
            del self._ongoing[transaction.first_offset]
            self._unreplicated[transaction.first_offset] = transaction.last_offset
            if transaction.aborted:
                last_stable_offset = next(iter(self._ongoing), transaction.last_offset + 1)
                aborted.append(
                    AbortedTransaction(
                        transaction.producer_id,
                        transaction.first_offset,
                        transaction.last_offset,
                        min(last_stable_offset, transaction.last_offset + 1),
                    )
                )
        return aborted


class ProducerUpdate:
    """The changes that a series of batches makes to a producer state, not applied yet."""

    __slots__ = ("_admissions", "_known", "completed", "ended", "producers", "started")

    def __init__(self, state: ProducerState, admissions: Admissions | None = None) -> None:
        """With admissions, clients begin only such transactions as were admitted."""
        self._known = state.producers
        self._admissions = admissions
        self.producers: dict[int, Producer] = {}
        # Made only where there is something to put in: most writes neither begin nor end a transaction.
        self.started: dict[int, int] | None = None
        # The producers whose transactions are over, whether they had begun here or not, and those that had.
        self.ended: list[int] | None = None
        self.completed: list[CompletedTransaction] = _NO_TRANSACTIONS

    def add_data(self, header: BatchHeader, base_offset: int, origin: AppendOrigin) -> ProducerBatch | None:
        """A batch of records of a producer; raises if the producer may not append it.

        If a client sends a batch again that is in the log already, nothing is added, and that one is given back.
        """
        producer_id, sequence = header[9], header[11]
        producer = self.producers.get(producer_id) or self._known.get(producer_id)
        if producer is not None:
            epoch, batches, _, coordinator_epoch, first_offset = producer
            if (
                header[10] == epoch
                and batches
                and sequence == (batches[-1][1] + 1) & _MAX_SEQUENCE
                and (first_offset is not None) is bool(header[5] & TRANSACTIONAL_FLAG)
            ):
                # What follows on the last, as nearly all do. These are named tuples, made the short way.
                last_offset_delta, timestamp = header[6], header[8]
                batch: ProducerBatch = _new(
                    ProducerBatch,
                    (
                        sequence,
                        (sequence + last_offset_delta) & _MAX_SEQUENCE,
                        base_offset,
                        base_offset + last_offset_delta,
                        timestamp,
                    ),
                )
                self.producers[producer_id] = _new(
                    Producer,
                    (epoch, (*batches[1 - _BATCHES_KEPT :], batch), timestamp, coordinator_epoch, first_offset),
                )
                return None
        return self._add_unexpected(header, base_offset, origin, producer or _NEW_PRODUCER)

    def _add_unexpected(
        self, header: BatchHeader, base_offset: int, origin: AppendOrigin, producer: Producer
    ) -> ProducerBatch | None:
        """A batch that does not just follow on the producer's last one."""
        (_, _, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, epoch, sequence, _) = header
        known_epoch, batches, _, coordinator_epoch, first_offset = producer
        last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else advance_sequence(sequence, last_offset_delta)
        if epoch != known_epoch or sequence != (advance_sequence(batches[-1][1], 1) if batches else 0):
            if origin is AppendOrigin.CLIENT:
                duplicate = _find_duplicate(producer, epoch, sequence, last_sequence)
                if duplicate is not None:
                    return duplicate
            if origin is not AppendOrigin.REPLICATION:
                _check_epoch(producer_id, producer, epoch)
                if origin is AppendOrigin.CLIENT:
                    _check_sequence(producer_id, producer, epoch, sequence)
            if epoch != known_epoch:
                batches = ()
        if attributes & TRANSACTIONAL_FLAG:
            if first_offset is None:
                if self._admissions is not None and origin is AppendOrigin.CLIENT:
                    self._admissions.check(producer_id, epoch, sequence, known_epoch)
                first_offset = base_offset
                if self.started is None:
                    self.started = {}
                self.started[base_offset] = producer_id
        elif first_offset is not None and origin is not AppendOrigin.REPLICATION:
            raise InvalidTransactionState(
                f"producer {producer_id} sends outside of a transaction while it has one under way"
            )
        batch = ProducerBatch(sequence, last_sequence, base_offset, base_offset + last_offset_delta, max_timestamp)
        self.producers[producer_id] = Producer(
            epoch, (*batches[1 - _BATCHES_KEPT :], batch), max_timestamp, coordinator_epoch, first_offset
        )
        return None

    def add_marker(
        self,
        header: BatchHeader,
        marker: EndTransactionMarker,
        offset: int,
        origin: AppendOrigin,
        transaction_version: int = 0,
    ) -> None:
        """The end of a transaction; raises if it comes from a coordinator or for an epoch that is over.

        From transaction version 2 on, every marker has an epoch of its own: one that is not newer than what was seen is
        a late one. It may only be the repetition of one that has been written already.
        """
        producer_id = header.producer_id
        epoch = header.producer_epoch
        producer = self.producers.get(producer_id) or self._known.get(producer_id, _NEW_PRODUCER)
        if origin is not AppendOrigin.REPLICATION:
            stale = epoch < producer.producer_epoch
            if transaction_version >= 2 and epoch == producer.producer_epoch:
                stale = producer.current_transaction_first_offset is not None
            if stale:
                raise InvalidProducerEpoch(
                    f"the end of a transaction of producer {producer_id} has epoch {epoch}, "
                    f"and {producer.producer_epoch} was seen already"
                )
            if marker.coordinator_epoch < producer.coordinator_epoch:
                raise TransactionCoordinatorFenced(
                    f"the coordinator of producer {producer_id} has epoch {marker.coordinator_epoch}, "
                    f"and {producer.coordinator_epoch} was seen already"
                )
        if self.ended is None:
            self.ended, self.completed = [], []
        self.ended.append(producer_id)
        if producer.current_transaction_first_offset is not None:
            aborted = marker.control_type is ControlType.ABORT
            completed = CompletedTransaction(producer_id, producer.current_transaction_first_offset, offset, aborted)
            self.completed.append(completed)
        self.producers[producer_id] = Producer(
            epoch,
            producer.batches if epoch == producer.producer_epoch else (),
            marker.timestamp,
            marker.coordinator_epoch,
            None,
        )


def _find_duplicate(producer: Producer, epoch: int, first_sequence: int, last_sequence: int) -> ProducerBatch | None:
    if epoch == producer.producer_epoch:
        for batch in producer.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
    return None


def _check_epoch(producer_id: int, producer: Producer, epoch: int) -> None:
    if epoch < producer.producer_epoch:
        raise InvalidProducerEpoch(
            f"producer {producer_id} has epoch {epoch}, and {producer.producer_epoch} was seen already"
        )


def _check_sequence(producer_id: int, producer: Producer, epoch: int, sequence: int) -> None:
    if producer.producer_epoch == NO_PRODUCER_EPOCH:
        # Nothing is known of this producer, perhaps because retention deleted its records: any sequence will do.
        return
    expected = 0 if epoch != producer.producer_epoch else advance_sequence(producer.last_sequence, 1)
    if sequence != expected:
        raise OutOfOrderSequence(
            f"producer {producer_id} sends sequence {sequence} where {expected} is next, "
            f"in epoch {epoch} after {producer.producer_epoch}"
        )

"""What a partition knows about the producers that write to it.

For each producer id: its epoch, its last five batches (to detect duplicates), and where its open transaction began. All
of this follows from the log: only batches in the log change a `ProducerState`, and a snapshot is just a shortcut.

Nothing changes before a write has succeeded. Batches are first checked and prepared in a `ProducerUpdate`, which is
then applied or dropped.
"""

from enum import Enum
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import (
    ATTRIBUTES_FIELD,
    BASE_SEQUENCE_FIELD,
    LAST_OFFSET_DELTA_FIELD,
    MAX_TIMESTAMP_FIELD,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    PRODUCER_EPOCH_FIELD,
    PRODUCER_ID_FIELD,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    advance_sequence,
)
from barnabas.protocol.records.control import ControlType, EndTransactionMarker
from barnabas.storage.admissions import Admissions
from barnabas.storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.producer_snapshot import SnapshotEntry

_BATCHES_KEPT: Final = 5
_NO_OFFSET: Final = -1
_NO_COORDINATOR_EPOCH: Final = -1
_MAX_SEQUENCE: Final = 0x7FFFFFFF
_new: Final = tuple.__new__


class AppendOrigin(Enum):
    """Who appends. This decides what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    # A leader, or an earlier run of this broker, has already checked the batch.
    REPLICATION = "replication"


class ProducerBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


# The index of `last_sequence`, for the hot path.
_LAST_SEQUENCE_FIELD: Final = 1


class Producer(NamedTuple):
    producer_epoch: int = NO_PRODUCER_EPOCH
    # The last few batches, latest last.
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
        # Transactions without an end marker: first offset to producer id, in ascending order of offsets.
        self._ongoing: dict[int, int] = {}
        # Transactions whose end marker is at or above the high watermark: first offset to the marker's offset. A reader
        # of committed records must not pass them yet, because a leader change may still lose the marker.
        self._unreplicated: dict[int, int] = {}

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction that may not have ended."""
        if not self._ongoing and not self._unreplicated:
            return None
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
        """Forget producers that have been idle for too long and have no open transaction."""
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
        """Apply an update after its batches were written to the log. Returns the transactions that were aborted."""
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
    """The changes that a series of batches will make to a producer state."""

    __slots__ = ("_admissions", "_known", "completed", "ended", "producers", "started")

    def __init__(self, state: ProducerState, admissions: Admissions | None = None) -> None:
        """With `admissions`, clients may only begin transactions that were admitted."""
        self._known = state.producers
        self._admissions = admissions
        self.producers: dict[int, Producer] = {}
        # Created only when needed: most writes neither begin nor end a transaction.
        self.started: dict[int, int] | None = None
        # The producers whose transactions have ended, whether they had started here or not, with the latest epoch of
        # those transactions; and the transactions that had started.
        self.ended: list[tuple[int, int]] | None = None
        self.completed: list[CompletedTransaction] = _NO_TRANSACTIONS

    def add_data(self, header: BatchHeader, base_offset: int, origin: AppendOrigin) -> ProducerBatch | None:
        """Add a producer's batch of records; raises if the producer may not append it.

        If the batch is a duplicate of one in the log, nothing is added, and that one is returned.
        """
        producer_id, sequence = header[PRODUCER_ID_FIELD], header[BASE_SEQUENCE_FIELD]
        producer = self.producers.get(producer_id) or self._known.get(producer_id)
        if producer is not None:
            epoch, batches, _, coordinator_epoch, first_offset = producer
            if (
                header[PRODUCER_EPOCH_FIELD] == epoch
                and batches
                and sequence == (batches[-1][_LAST_SEQUENCE_FIELD] + 1) & _MAX_SEQUENCE
                and (first_offset is not None) is bool(header[ATTRIBUTES_FIELD] & TRANSACTIONAL_FLAG)
            ):
                # The usual case: the next sequence. These are named tuples, created the fast way.
                last_offset_delta, timestamp = header[LAST_OFFSET_DELTA_FIELD], header[MAX_TIMESTAMP_FIELD]
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
        """Add a batch that does not simply continue the producer's last one."""
        (_, _, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, epoch, sequence, _) = header
        known_epoch, batches, _, coordinator_epoch, first_offset = producer
        last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else advance_sequence(sequence, last_offset_delta)
        if epoch != known_epoch or sequence != (advance_sequence(batches[-1].last_sequence, 1) if batches else 0):
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
            raise InvalidTransactionState(f"producer {producer_id} sent a batch outside of its open transaction")
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
        """Add the end of a transaction; raises if its coordinator or its epoch is outdated.

        From transaction version 2 on, every marker has its own epoch. A marker whose epoch is not newer than the latest
        one is late. It is only accepted if it repeats a marker that has already been written.
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
                    f"the marker for producer {producer_id} has epoch {epoch}, "
                    f"but {producer.producer_epoch} was already seen"
                )
            if marker.coordinator_epoch < producer.coordinator_epoch:
                raise TransactionCoordinatorFenced(
                    f"the coordinator of producer {producer_id} has epoch {marker.coordinator_epoch}, "
                    f"but {producer.coordinator_epoch} was already seen"
                )
        if self.ended is None:
            self.ended, self.completed = [], []
        # From version 2 on, a marker has the epoch of the producer's next transaction, which may be waiting already.
        self.ended.append((producer_id, epoch - 1 if transaction_version >= 2 else epoch))
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
            f"producer {producer_id} has epoch {epoch}, but {producer.producer_epoch} was already seen"
        )


def _check_sequence(producer_id: int, producer: Producer, epoch: int, sequence: int) -> None:
    if producer.producer_epoch == NO_PRODUCER_EPOCH:
        # The producer is unknown, perhaps because retention deleted its records: accept any sequence.
        return
    expected = 0 if epoch != producer.producer_epoch else advance_sequence(producer.last_sequence, 1)
    if sequence != expected:
        raise OutOfOrderSequence(
            f"producer {producer_id} sent sequence {sequence}, but {expected} is next, "
            f"in epoch {epoch} after {producer.producer_epoch}"
        )

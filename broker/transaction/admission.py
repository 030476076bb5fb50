"""Admits batches to transactions.

The first batch of a producer's transaction in a partition is accepted only if the transaction's coordinator knows that
the partition takes part. Up to version 11 of Produce the client has told the coordinator beforehand, and this is
verified; from 12 on the partition is added here. Once the transaction is open in the partition, the coordinator is not
asked.

Batches from the same producer to the same partition wait behind its first one. If that one is refused, so are they:
they would leave a gap.

The decision is recorded at the partition's log (barnabas.storage.admissions), which checks it at the append: nothing is
appended after the end of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.replica.moments import Repeat
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.surroundings import Appender
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

Answer = Callable[[Mapping[TopicPartition, ErrorCode]], None]

_NOT_IN_TRANSACTION: Final = (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)


class Coordinator(Protocol):
    """The questions to the transaction coordinator, on whichever broker (transaction/partition_adder.py)."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        answer: Answer,
    ) -> None: ...

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        answer: Answer,
    ) -> None: ...


class TransactionalAppender(Appender, Protocol):
    def not_admitted(self, place: Any, error: ErrorCode) -> None:
        """The records that were passed with `place` are not admitted to the transaction."""


class Transaction(NamedTuple):
    """Whose transaction it is, and what its client knows."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    # It lets the broker add partitions, and uses each epoch for one transaction only.
    adds_partitions: bool
    # It knows the error code that means that only this transaction is lost.
    knows_abortable: bool


class TransactionalBatch(NamedTuple):
    partition: Partition
    sequence: int
    records: memoryview
    appender: TransactionalAppender
    place: Any

    def append(self) -> None:
        self.partition.append_soon(self.records, self.appender, self.place)


_Waiting = list[tuple[Transaction, TransactionalBatch]]


class Admission:
    def __init__(self, config: BrokerConfig, clock: Clock, coordinator: Coordinator) -> None:
        self._config = config
        self._clock = clock
        self._coordinator = coordinator
        # The first batches that wait for the coordinator's answer, and the batches behind them.
        self._waiting: dict[tuple[Partition, int], _Waiting] = {}

    def on_leader(self, partition: Partition) -> None:
        """In the next epoch of the same leader, what was admitted is still valid."""

    def on_not_leader(self, partition: Partition) -> None:
        """Another leader may write the transaction's end: what was admitted here no longer counts."""
        partition.admissions.clear()
        for key in [key for key in self._waiting if key[0] is partition]:
            for _, batch in self._waiting.pop(key):
                batch.appender.not_admitted(batch.place, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def admit(self, transaction: Transaction, batches: Sequence[TransactionalBatch]) -> None:
        """Append batches of one transaction, or tell their appenders why not."""
        asked: dict[TopicPartition, tuple[Partition, _Waiting]] = {}
        for batch in batches:
            partition = batch.partition
            waiting = self._waiting.get((partition, transaction.producer_id))
            if waiting is not None:
                waiting.append((transaction, batch))
            elif is_under_way(partition, transaction):
                batch.append()
            elif _is_fenced(partition, transaction):
                self._note(transaction, batch, ErrorCode.INVALID_PRODUCER_EPOCH)
                batch.appender.not_admitted(batch.place, ErrorCode.INVALID_PRODUCER_EPOCH)
            else:
                waiting = self._waiting[partition, transaction.producer_id] = [(transaction, batch)]
                self._try_out(transaction, batch)
                asked[partition.log.topic_partition] = partition, waiting

        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            for name, (partition, waiting) in asked.items():
                if self._waiting.get((partition, transaction.producer_id)) is waiting:
                    self._decided(transaction, partition, errors[name])

        if asked:
            self.ask(transaction, list(asked), answered)

    def _try_out(self, transaction: Transaction, batch: TransactionalBatch) -> None:
        batch.partition.admissions.try_out(
            transaction.producer_id,
            transaction.producer_epoch,
            batch.sequence,
            from_zero=transaction.adds_partitions,
            now_ms=self._clock.now_ms(),
        )

    def _decided(self, transaction: Transaction, partition: Partition, error: ErrorCode) -> None:
        """Append or refuse what waits for the coordinator's answer, in order."""
        waiting = self._waiting.pop((partition, transaction.producer_id))
        if not error and not partition.admissions.admit(transaction.producer_id, transaction.producer_epoch):
            # A marker came in between. If it was that of the producer's last transaction, the coordinator says so.
            for whose, batch in waiting:
                self.admit(whose, [batch])
            return
        for whose, batch in waiting:
            if whose.producer_epoch != transaction.producer_epoch:
                self.admit(whose, [batch])
            elif error:
                self._try_out(whose, batch)
                self._note(whose, batch, error)
                batch.appender.not_admitted(batch.place, error)
            else:
                batch.append()

    def _note(self, whose: Transaction, batch: TransactionalBatch, error: ErrorCode) -> None:
        """For people who look: a producer was refused."""
        partition = batch.partition
        kind = "fenced" if error == ErrorCode.INVALID_PRODUCER_EPOCH else "state"
        known = f"{whose.transactional_id} has a producer of a later epoch" if kind == "fenced" else error.name
        partition.moments.repeats.append(
            Repeat(
                self._clock.now_ms(),
                partition.topic,
                partition.index,
                whose.producer_id,
                whose.producer_epoch,
                batch.sequence,
                1,
                kind,
                f"it was not let into a transaction: {known}",
            )
        )

    def ask(self, transaction: Transaction, partitions: Sequence[TopicPartition], answer: Answer) -> None:
        """Whether these partitions take part in the transaction; with NONE, each of them does."""

        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            answer({name: _as_told(error, transaction) for name, error in errors.items()})

        transactional_id, producer_id, epoch, adds_partitions, _ = transaction
        if adds_partitions:
            self._add(transaction, partitions, answered)
        elif self._config.transaction_partition_verification_enable:
            self._coordinator.verify(transactional_id, producer_id, epoch, partitions, answered)
        else:
            answered(dict.fromkeys(partitions, ErrorCode.NONE))

    def _add(self, transaction: Transaction, partitions: Sequence[TopicPartition], answer: Answer) -> None:
        """Add partitions. The producer's last transaction may still be ending, which takes a moment."""
        give_up = self._clock.monotonic() + self._config.add_partitions_to_txn_retry_backoff_max_ms / 1000

        def add() -> None:
            self._coordinator.add_partitions(*transaction[:3], partitions, done)

        def done(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            if ErrorCode.CONCURRENT_TRANSACTIONS in errors.values() and self._clock.monotonic() < give_up:
                self._clock.call_later(self._config.add_partitions_to_txn_retry_backoff_ms / 1000, add)
            else:
                answer(errors)

        add()


def is_under_way(partition: Partition, transaction: Transaction) -> bool:
    """Whether the producer has an open transaction in this partition, or has been admitted and is about to."""
    producer = partition.log.producer_state.producers.get(transaction.producer_id)
    return (
        producer is not None
        and producer.current_transaction_first_offset is not None
        and producer.producer_epoch == transaction.producer_epoch
    ) or partition.admissions.is_admitted(transaction.producer_id, transaction.producer_epoch)


def _is_fenced(partition: Partition, transaction: Transaction) -> bool:
    """Whether the partition has seen a later epoch. The coordinator may no longer know this producer id."""
    producer = partition.log.producer_state.producers.get(transaction.producer_id)
    return producer is not None and producer.producer_epoch > transaction.producer_epoch


def _as_told(error: ErrorCode, transaction: Transaction) -> ErrorCode:
    """Translates an error of the coordinator for producers."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _NOT_IN_TRANSACTION and not transaction.adds_partitions:
        return ErrorCode.TRANSACTION_ABORTABLE if transaction.knows_abortable else ErrorCode.INVALID_TXN_STATE
    return error

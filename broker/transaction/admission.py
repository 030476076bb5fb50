"""Letting clients write in a transaction.

The first batch that a producer's transaction brings to a partition is let in only if the transaction's coordinator
knows that the partition takes part in it. Up to version 11 of Produce the client has told the coordinator before, and
this is verified; from 12 on the partition is added here. Once the transaction is under way in the partition, nobody is
asked.

What comes from the same producer to the same partition while its first batch waits, waits behind it. If that one is
refused, so are they: they would leave a gap.

The decision is noted at the partition's log (storage.admissions), which checks it when it appends: a transaction that
has ended meanwhile lets nothing in behind its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.replica.partition import Appender, Partition
from protocol.errors import ErrorCode

TopicPartition = tuple[str, int]
Answer = Callable[[Mapping[TopicPartition, ErrorCode]], None]

_NOT_IN_TRANSACTION: Final = (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)


class Coordinator(Protocol):
    """What the coordinator of transactions is asked."""

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]: ...

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        done: Callable[[ErrorCode], None],
    ) -> None: ...


class TransactionalAppender(Appender, Protocol):
    def not_admitted(self, place: Any, error: ErrorCode) -> None:
        """The records that were given with `place` are not let into the transaction."""


class Transaction(NamedTuple):
    """Whose transaction it is, and what its client knows."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    # It leaves it to the broker to add partitions, and uses an epoch for one transaction only.
    adds_partitions: bool
    # It knows the error that says that nothing is lost but this transaction.
    knows_abortable: bool


class TransactionalBatch(NamedTuple):
    partition: Partition
    sequence: int
    records: memoryview
    appender: TransactionalAppender
    place: Any

    def append(self) -> None:
        self.partition.append_soon(self.records, self.appender, self.place)


class Admission:
    def __init__(self, config: BrokerConfig, clock: Clock, coordinator: Coordinator) -> None:
        self._config = config
        self._clock = clock
        self._coordinator = coordinator
        # The first batches for which the coordinator is being asked, and what came behind them.
        self._waiting: dict[tuple[Partition, int], list[tuple[Transaction, TransactionalBatch]]] = {}

    def admit(self, transaction: Transaction, batches: Sequence[TransactionalBatch]) -> None:
        """Have batches of one transaction appended, or tell their appenders why not."""
        asked: dict[TopicPartition, Partition] = {}
        for batch in batches:
            partition = batch.partition
            waiting = self._waiting.get((partition, transaction.producer_id))
            if waiting is not None:
                waiting.append((transaction, batch))
            elif is_under_way(partition, transaction):
                batch.append()
            elif _is_fenced(partition, transaction):
                batch.appender.not_admitted(batch.place, ErrorCode.INVALID_PRODUCER_EPOCH)
            else:
                self._waiting[partition, transaction.producer_id] = [(transaction, batch)]
                self._try_out(transaction, batch)
                asked[partition.topic, partition.index] = partition

        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            for name, partition in asked.items():
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
        """What waits for the coordinator's answer is appended or refused, in its order."""
        if not error:
            partition.admissions.admit(transaction.producer_id, transaction.producer_epoch)
        for whose, batch in self._waiting.pop((partition, transaction.producer_id)):
            if whose.producer_epoch != transaction.producer_epoch:
                self.admit(whose, [batch])
            elif error:
                self._try_out(whose, batch)
                batch.appender.not_admitted(batch.place, error)
            else:
                batch.append()

    def ask(self, transaction: Transaction, partitions: Sequence[TopicPartition], answer: Answer) -> None:
        """Whether these partitions take part in the transaction; with NONE, each of them does."""

        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            answer({name: _as_told(error, transaction) for name, error in errors.items()})

        transactional_id, producer_id, epoch, adds_partitions, _ = transaction
        if adds_partitions:
            self._add(transaction, partitions, answered)
        elif self._config.transaction_partition_verification_enable:
            answered(self._coordinator.verify(transactional_id, producer_id, epoch, partitions))
        else:
            answered(dict.fromkeys(partitions, ErrorCode.NONE))

    def _add(self, transaction: Transaction, partitions: Sequence[TopicPartition], answer: Answer) -> None:
        """Add partitions. The producer's last transaction may not have come to its end yet, which takes a moment."""
        give_up = self._clock.monotonic() + self._config.add_partitions_to_txn_retry_backoff_max_ms / 1000

        def add() -> None:
            self._coordinator.add_partitions(*transaction[:3], partitions, done)

        def done(error: ErrorCode) -> None:
            if error == ErrorCode.CONCURRENT_TRANSACTIONS and self._clock.monotonic() < give_up:
                self._clock.call_later(self._config.add_partitions_to_txn_retry_backoff_ms / 1000, add)
            else:
                answer(dict.fromkeys(partitions, error))

        add()


def is_under_way(partition: Partition, transaction: Transaction) -> bool:
    """Whether the producer is within a transaction in this partition, or has been let in and is about to be."""
    producer = partition.log.producer_state.producers.get(transaction.producer_id)
    return (
        producer is not None
        and producer.current_transaction_first_offset is not None
        and producer.producer_epoch == transaction.producer_epoch
    ) or partition.admissions.is_admitted(transaction.producer_id, transaction.producer_epoch)


def _is_fenced(partition: Partition, transaction: Transaction) -> bool:
    """Whether the partition has seen a later epoch. The coordinator may not know this producer id any more."""
    producer = partition.log.producer_state.producers.get(transaction.producer_id)
    return producer is not None and producer.producer_epoch > transaction.producer_epoch


def _as_told(error: ErrorCode, transaction: Transaction) -> ErrorCode:
    """An error of the coordinator in the terms of those who write."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _NOT_IN_TRANSACTION and not transaction.adds_partitions:
        return ErrorCode.TRANSACTION_ABORTABLE if transaction.knows_abortable else ErrorCode.INVALID_TXN_STATE
    return error

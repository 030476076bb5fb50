"""The operations on a transactional id, from the request to the answer.

The run-time calls `decide` with the current state, and `done` when the decision is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING

import structlog

from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult, Operation
from barnabas.broker.transaction import decisions
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.records import tombstone, transaction_record
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.topic_partition import TopicPartition

log = structlog.get_logger()

if TYPE_CHECKING:
    from barnabas.broker.transaction.coordinator import TransactionCoordinator

Done = Callable[[ErrorCode], None]
# Gets the error, and the id and epoch that the producer has from now on.
AnswerProducer = Callable[[ErrorCode, int, int], None]


class AddPartitions:
    __slots__ = ("_client_version", "_epoch", "_now_ms", "_partitions", "_producer_id", "done", "key")

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Set[TopicPartition],
        client_version: int,
        now_ms: int,
        done: Done,
    ) -> None:
        self.key = transactional_id
        self._producer_id = producer_id
        self._epoch = producer_epoch
        self._partitions = partitions
        self._client_version = client_version
        self._now_ms = now_ms
        self.done = done

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        outcome = decisions.add_partitions(
            shard.transactions.get(self.key),
            self._producer_id,
            self._epoch,
            self._partitions,
            self._client_version,
            self._now_ms,
        )
        if isinstance(outcome, ErrorCode):
            if outcome:
                whose = f"producer {self._producer_id} of epoch {self._epoch}"
                shard.note(self._now_ms, self.key, f"{whose} was not let in: {outcome.name}")
            return _without_record(self, outcome)
        return _with_record(self, transaction_record(outcome))


class InitProducerId:
    """Fences the previous owner of the id. Its open transaction is aborted first, and then this is decided again."""

    __slots__ = (
        "_answer",
        "_coordinator",
        "_decided",
        "_expected_epoch",
        "_expected_id",
        "_index",
        "_new_producer_id",
        "_timeout_ms",
        "key",
    )

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        index: int,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int],
        new_producer_id: int | None,
        answer: AnswerProducer,
    ) -> None:
        self.key = transactional_id
        self._coordinator = coordinator
        self._index = index
        self._timeout_ms = timeout_ms
        self._expected_id, self._expected_epoch = expected
        self._new_producer_id = new_producer_id
        self._answer = answer
        self._decided: TransactionMetadata | None = None

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        outcome = decisions.init_producer_id(
            shard.transactions.get(self.key),
            self.key,
            self._timeout_ms,
            self._expected_id,
            self._expected_epoch,
            self._new_producer_id,
            self._coordinator.now_ms(),
        )
        if isinstance(outcome, ErrorCode):
            shard.note(self._coordinator.now_ms(), self.key, f"a producer that began got {outcome.name}")
            return _without_record(self, outcome)
        if outcome.state != TransactionState.EMPTY:
            shard.note(self._coordinator.now_ms(), self.key, "another producer began with this id: it is aborted")
        self._decided = outcome
        return _with_record(self, transaction_record(outcome))

    def done(self, error: ErrorCode) -> None:
        decided = self._decided
        if error or decided is None:
            self._answer(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        elif decided.state == TransactionState.EMPTY:
            self._answer(ErrorCode.NONE, decided.producer_id, decided.producer_epoch)
        else:
            self._decided = None
            self._coordinator.finish(self._index, decided, self._aborted)

    def _aborted(self, complete: bool) -> None:
        if complete:
            self._coordinator.ask(self._index, self)
        else:
            self._answer(ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class EndTransaction:
    """Commits or aborts.

    Kafka answers when the end is decided, and refuses the client's next request while markers are in flight. Here the
    answer comes when everything is complete, in the same turn of the loop, so that no client has to retry. If
    something delays the markers, or other brokers have to write some, the answer comes as in Kafka.
    """

    __slots__ = (
        "_answer",
        "_client_version",
        "_commit",
        "_coordinator",
        "_decided",
        "_epoch",
        "_index",
        "_new_producer_id",
        "_producer_id",
        "key",
    )

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        index: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        client_version: int,
        new_producer_id: int | None,
        answer: AnswerProducer,
    ) -> None:
        self.key = transactional_id
        self._coordinator = coordinator
        self._index = index
        self._producer_id = producer_id
        self._epoch = producer_epoch
        self._commit = commit
        self._client_version = client_version
        self._new_producer_id = new_producer_id
        self._answer = answer
        self._decided: TransactionMetadata | None = None

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        current = shard.transactions.get(self.key)
        outcome = decisions.end_transaction(
            current,
            self._producer_id,
            self._epoch,
            self._commit,
            self._client_version,
            self._new_producer_id,
            self._coordinator.now_ms(),
        )
        if isinstance(outcome, ErrorCode):
            how = "commit" if self._commit else "abort"
            if outcome:
                whose = f"producer {self._producer_id} of epoch {self._epoch}"
                shard.note(self._coordinator.now_ms(), self.key, f"{whose} could not {how}: {outcome.name}")
            elif current is not None:  # it has already ended this way, and its answer was lost
                shard.note(self._coordinator.now_ms(), self.key, f"the {how} was asked for again: it is done already")
                self._producer_id, self._epoch = current.producer_id, current.producer_epoch
            return _without_record(self, outcome)
        self._decided = outcome
        return _with_record(self, transaction_record(outcome))

    def done(self, error: ErrorCode) -> None:
        if error:
            self._answer(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        elif self._decided is None:
            self._answer(ErrorCode.NONE, self._producer_id, self._epoch)
        else:
            self._coordinator.finish(self._index, self._decided, self._finished)

    def _finished(self, complete: bool) -> None:
        decided = self._decided
        if decided is None:
            return
        if decided.next_producer_id != NO_PRODUCER_ID:
            self._answer(ErrorCode.NONE, decided.next_producer_id, 0)
        else:
            self._answer(ErrorCode.NONE, decided.producer_id, decided.producer_epoch)


class AbortTimedOut:
    """A transaction has timed out."""

    __slots__ = ("_coordinator", "_decided", "_index", "_new_producer_id", "key")

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        index: int,
        transactional_id: str,
        new_producer_id: int | None = None,
    ) -> None:
        self.key = transactional_id
        self._coordinator = coordinator
        self._index = index
        self._new_producer_id = new_producer_id
        self._decided: TransactionMetadata | None = None

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        current = shard.transactions.get(self.key)
        now_ms = self._coordinator.now_ms()
        if current is None or not decisions.is_timed_out(current, now_ms):
            return _without_record(self)
        shard.note(now_ms, self.key, f"it was open for more than {current.timeout_ms / 1000:g} s: it is aborted")
        self._decided = decisions.abort_and_fence(current, now_ms, self._new_producer_id)
        return _with_record(self, transaction_record(self._decided))

    def done(self, error: ErrorCode) -> None:
        if not error and self._decided is not None:
            log.info("transaction timed out", transactional_id=self.key)
            self._coordinator.finish(self._index, self._decided)


class Complete:
    """All markers of a transaction are written."""

    __slots__ = ("_now_ms", "_prepared", "_then", "key")

    def __init__(self, now_ms: Callable[[], int], prepared: TransactionMetadata, then: Done) -> None:
        self.key = prepared.transactional_id
        self._now_ms = now_ms
        self._prepared = prepared
        self._then = then

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        if shard.transactions.get(self.key) != self._prepared:
            return _without_record(self)
        return _with_record(self, transaction_record(decisions.complete(self._prepared, self._now_ms())))

    def done(self, error: ErrorCode) -> None:
        self._then(error)


class Expire:
    """A transactional id that has been idle for long is forgotten."""

    __slots__ = ("_kept_ms", "_now_ms", "_then", "key")

    def __init__(self, transactional_id: str, kept_ms: int, now_ms: int, then: Callable[[], None]) -> None:
        self.key = transactional_id
        self._kept_ms = kept_ms
        self._now_ms = now_ms
        self._then = then

    def decide(self, shard: TransactionShard) -> CoordinatorResult:
        current = shard.transactions.get(self.key)
        if current is None or not decisions.is_expired(current, self._kept_ms, self._now_ms):
            return _without_record(self)
        return _with_record(self, tombstone(self.key))

    def done(self, error: ErrorCode) -> None:
        """A failure is retried the next time."""
        if not error:
            self._then()


def _with_record(operation: Operation, record: CoordinatorRecord) -> CoordinatorResult:
    return CoordinatorResult([record], operation.done, key=operation.key)


def _without_record(operation: Operation, error: ErrorCode = ErrorCode.NONE) -> CoordinatorResult:
    """It is refused, or already true."""
    return CoordinatorResult(done=operation.done, error=error, key=operation.key)

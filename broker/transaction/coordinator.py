"""The transaction coordinator: finds the shard that a transactional id belongs to and has it asked, sees transactions
to their end, and looks after time.

All that is asked for in a turn of the loop is decided at its end, in `carry_out`: what a shard decides is one append,
and so are the markers that meet in a partition. A transaction is ended in three steps, each written before the next:
the decision (Prepare*), a marker in each of its partitions, and that all markers are there (Complete*). Whatever a
crash leaves between the first and the last is finished when the shard is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Set
from typing import Any, Final

import structlog

from broker.clock import Clock, Every
from broker.config import BrokerConfig
from broker.controller.controller import Controller
from broker.controller.view import ClusterChange, ClusterView
from broker.coordinator.decision import Decision, Operation
from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.timers import ClockTimers
from broker.internal_topics import TRANSACTION_STATE, new_topic
from broker.replica.replicas import Replicas
from broker.transaction import decisions
from broker.transaction.markers import Marker, TransactionMarkers
from broker.transaction.metadata import BUMPS_EPOCH, TopicPartition, TransactionMetadata
from broker.transaction.operations import (
    AbortTimedOut,
    AddPartitions,
    AnswerProducer,
    Complete,
    Done,
    EndTransaction,
    Expire,
    InitProducerId,
)
from broker.transaction.producer_ids import ProducerIds
from broker.transaction.records import read_record
from broker.transaction.shard import TransactionShard
from broker.transaction.states import TransactionState
from protocol.errors import ErrorCode
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

log = structlog.get_logger()

# How many idle ids of a shard are forgotten in one turn of the loop.
_EXPIRED_A_TURN: Final = 500
# When a marker or its completion could not be written, how long until it is tried again.
_RETRY_MS: Final = 1000
# The partition has moved on to a newer epoch, of the producer or of the coordinator: nothing of this one is open there.
_MARKER_NOT_NEEDED: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)

Finished = Callable[[bool], None]


def _nothing() -> None:
    pass


def _nobody_waits(complete: bool) -> None:
    pass


class TransactionCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        controller: Controller,
        cluster: ClusterView,
        clock: Clock,
        producer_ids: ProducerIds,
        markers: TransactionMarkers,
        at_end_of_turn: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`at_end_of_turn` has `carry_out` called once this turn's callbacks are done; `spawn` runs what waits."""
        self._config = config
        self._replicas = replicas
        self._controller = controller
        self._cluster = cluster
        self._producer_ids = producer_ids
        self._markers = markers
        self._at_end_of_turn = at_end_of_turn
        self._spawn = spawn
        self._timers = ClockTimers(clock)
        self._checks = (
            Every(
                clock,
                lambda: config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.abort_timed_out,
            ),
            Every(clock, lambda: config.transaction_remove_expired_transaction_cleanup_interval_ms, self.expire),
        )
        self._runtime = CoordinatorRuntime(TRANSACTION_STATE, replicas, self._make_shard, read_record)
        self.now_ms = clock.now_ms

    def start(self) -> None:
        self._runtime.load()
        self._cluster.subscribe(self._on_change)
        for check in self._checks:
            check.start()

    def stop(self) -> None:
        """Leave everything to the next start, what is asked for included."""
        for check in self._checks:
            check.cancel()
        self._runtime.unload()
        self._timers.cancel_all()

    def _make_shard(self, carry_out: Callable[[Decision], None]) -> TransactionShard:
        return TransactionShard(self._finish_loaded)

    def _on_change(self, change: ClusterChange) -> None:
        state = change.topics.get(TRANSACTION_STATE)
        if state is not None and state.new is None:
            self._runtime.unload()
            self._timers.cancel_all()

    async def ensure_topic(self) -> ErrorCode:
        """Make the topic that transactions are kept in, when it is first needed."""
        if self._cluster.topic(TRANSACTION_STATE) is None:
            (result,) = await self._controller.create_topics([new_topic(TRANSACTION_STATE, self._config)])
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
        await self._replicas.made(TRANSACTION_STATE)
        self._runtime.load()
        return ErrorCode.NONE

    # --- asking ---

    def ask(self, index: int, operation: Operation) -> None:
        self._runtime.ask(index, operation)
        self._at_end_of_turn()

    @property
    def has_asked(self) -> bool:
        return self._runtime.has_asked

    def carry_out(self) -> None:
        """Decide and write what was asked for in this turn of the loop."""
        self._runtime.carry_out_asked()

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, producer_id: int, producer_epoch: int, answer: AnswerProducer
    ) -> None:
        """An id and epoch for a producer; it may name those that it has (KIP-360), or -1."""
        error = ErrorCode.NONE
        if not transactional_id:
            error = ErrorCode.INVALID_REQUEST
        elif not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            error = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        found = error or self._runtime.shard_of(transactional_id)
        if not isinstance(found, ErrorCode):
            new_producer_id = None
            if decisions.needs_producer_id(found[1].transactions.get(transactional_id)):
                new_producer_id = await self._producer_ids.next()
                found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            answer(found, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return
        index, _ = found
        expected = producer_id, producer_epoch
        self.ask(index, InitProducerId(self, index, transactional_id, timeout_ms, expected, new_producer_id, answer))

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        done: Done,
        client_version: int = BUMPS_EPOCH,
    ) -> None:
        """Make partitions part of the producer's transaction, which begins with that if there is none."""
        if not transactional_id:
            done(ErrorCode.INVALID_REQUEST)
            return
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            done(found)
            return
        index, shard = found
        added = frozenset(partitions)
        current = shard.transactions.get(transactional_id)
        if (
            current is not None
            and current.state == TransactionState.ONGOING
            and added <= current.partitions
            and current.producer_id == producer_id
            and current.producer_epoch == producer_epoch
            and self._runtime.is_settled(index)
        ):
            done(ErrorCode.NONE)
            return
        self.ask(
            index,
            AddPartitions(transactional_id, producer_id, producer_epoch, added, client_version, self.now_ms(), done),
        )

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether each partition is part of the producer's transaction."""
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(partitions, found)
        current = found[1].transactions.get(transactional_id)
        error = decisions.objection(current, producer_id, producer_epoch)
        if error or current is None:
            return dict.fromkeys(partitions, error)
        return {
            partition: ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        client_version: int,
        answer: AnswerProducer,
        new_producer_id: int | None = None,
    ) -> bool:
        """Commit or abort. False, and nothing is done, if that takes a new producer id which was not given."""
        if not transactional_id:
            answer(ErrorCode.INVALID_REQUEST, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return True
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            answer(found, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return True
        index, shard = found
        if client_version >= BUMPS_EPOCH and new_producer_id is None:
            current = shard.transactions.get(transactional_id)
            if current is not None and current.is_epoch_exhausted:
                return False
        operation = EndTransaction(
            self,
            index,
            transactional_id,
            producer_id,
            producer_epoch,
            commit,
            client_version,
            new_producer_id,
            answer,
        )
        self.ask(index, operation)
        return True

    # --- the end of a transaction ---

    def finish(self, index: int, prepared: TransactionMetadata, then: Finished = _nobody_waits) -> None:
        """Bring a transaction whose end is decided to that end.

        `then` is told once: that it is complete, or that something holds it up. It is brought to its end in any case.
        """
        _Finish(self, self._runtime.leader_epoch(index), index, prepared, then).write(prepared.partitions)

    def _finish_loaded(self, prepared: TransactionMetadata) -> None:
        found = self._runtime.shard_of(prepared.transactional_id)
        if not isinstance(found, ErrorCode):
            self.finish(found[0], prepared)

    def is_gone(self, index: int) -> bool:
        """Whether the topic that a shard was kept in has been deleted."""
        return index not in self._runtime.shards

    def retry(self, key: tuple[str, str], again: Callable[[], None]) -> None:
        self._timers.schedule(key, _RETRY_MS, again)

    def write_marker(self, marker: Marker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        self._markers.write(marker, done)

    # --- time ---

    def abort_timed_out(self) -> None:
        """Abort the transactions that are open for longer than their producers said."""
        now_ms = self.now_ms()
        for index, shard in self._runtime.shards.items():
            for transactional_id in shard.timed_out(now_ms):
                if shard.transactions[transactional_id].is_epoch_exhausted:
                    self._spawn(self._abort_with_new_id(index, transactional_id))
                else:
                    self.ask(index, AbortTimedOut(self, index, transactional_id))

    async def _abort_with_new_id(self, index: int, transactional_id: str) -> None:
        """Abort the last transaction of a producer id. Its producer may go on after that, under the next one."""
        new_producer_id = await self._producer_ids.next()
        self.ask(index, AbortTimedOut(self, index, transactional_id, new_producer_id))

    def expire(self) -> None:
        """Forget the ids that have been idle for long, some in this turn of the loop, the others in the next ones."""
        now_ms = self.now_ms()
        kept_ms = self._config.transactional_id_expiration_ms
        for index, shard in self._runtime.shards.items():
            expired = shard.expired(kept_ms, now_ms)
            some = expired[:_EXPIRED_A_TURN]
            for transactional_id in some:
                more = len(expired) > len(some) and transactional_id is some[-1]
                self.ask(index, Expire(transactional_id, kept_ms, now_ms, self._expire_more if more else _nothing))

    def _expire_more(self) -> None:
        self._timers.schedule("expire more", 0, self.expire)

    # --- looking ---

    def describe(self, transactional_id: str) -> TransactionMetadata | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            return found
        return found[1].transactions.get(transactional_id) or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    @property
    def is_loading(self) -> bool:
        return self._runtime.is_loading

    def all_transactions(self) -> Iterator[TransactionMetadata] | ErrorCode:
        if self._runtime.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return (metadata for shard in self._runtime.shards.values() for metadata in shard.transactions.values())


class _Finish:
    """A transaction on the way from its decided end to its completion."""

    __slots__ = ("_coordinator", "_coordinator_epoch", "_index", "_prepared", "_then")

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        coordinator_epoch: int,
        index: int,
        prepared: TransactionMetadata,
        then: Finished,
    ) -> None:
        self._coordinator = coordinator
        self._coordinator_epoch = coordinator_epoch
        self._index = index
        self._prepared = prepared
        self._then = then

    def write(self, partitions: Set[TopicPartition]) -> None:
        prepared = self._prepared
        if not partitions:
            self._complete()
            return
        marker = Marker(
            prepared.producer_id,
            prepared.producer_epoch,
            self._coordinator_epoch,
            prepared.state == TransactionState.PREPARE_COMMIT,
            tuple(partitions),
            prepared.client_version,
        )
        self._coordinator.write_marker(marker, self._written)

    def _written(self, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        failed = {partition: error for partition, error in errors.items() if error not in _MARKER_NOT_NEEDED}
        if not failed:
            self._complete()
            return
        log.error(
            "markers could not be written",
            transactional_id=self._prepared.transactional_id,
            partitions=sorted(failed),
            errors=sorted({error.name for error in failed.values()}),
        )
        self._held_up(lambda: self.write(failed.keys()))

    def _complete(self) -> None:
        self._coordinator.ask(self._index, Complete(self._coordinator, self._prepared, self._completed))

    def _completed(self, error: ErrorCode) -> None:
        if error == ErrorCode.NOT_COORDINATOR and self._coordinator.is_gone(self._index):
            self._tell(False)
        elif error:
            self._held_up(self._complete)
        else:
            self._tell(True)

    def _held_up(self, again: Callable[[], None]) -> None:
        self._tell(False)
        self._coordinator.retry(("markers", self._prepared.transactional_id), again)

    def _tell(self, complete: bool) -> None:
        then, self._then = self._then, _nobody_waits
        then(complete)

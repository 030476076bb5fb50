"""The transaction coordinator: finds the shard of a transactional id, asks it, and watches time-outs.

Requests that arrive in one turn of the loop are decided at its end, in `carry_out`: the decisions of a shard are one
append, and so are the markers for one partition. A transaction ends in three steps, each written before the next: the
decision (Prepare*), a marker in each of its partitions, and the completion (Complete*); see transaction/ending.py. What
a crash or a change of the coordinator leaves in between is finished when the shard is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from barnabas.broker.clock import Clock, Every, Later
from barnabas.broker.config import BrokerConfig
from barnabas.broker.coordinator.cluster import Cluster, CreateInternalTopic
from barnabas.broker.coordinator.result import CoordinatorResult, Operation
from barnabas.broker.coordinator.runtime import CoordinatorRuntime
from barnabas.broker.coordinator.timers import ClockTimers
from barnabas.broker.internal_topics import TRANSACTION_STATE
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.transaction import decisions
from barnabas.broker.transaction.ending import Ending, Finished, Markers, ignore
from barnabas.broker.transaction.metadata import BUMPS_EPOCH, TransactionMetadata
from barnabas.broker.transaction.operations import (
    AbortTimedOut,
    AddPartitions,
    AnswerProducer,
    Done,
    EndTransaction,
    Expire,
    InitProducerId,
)
from barnabas.broker.transaction.producer_ids import ProducerIds, ProducerIdsUnavailable
from barnabas.broker.transaction.records import read_record
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.topic_partition import TopicPartition

# How many idle ids of a shard are forgotten in one turn of the loop.
_EXPIRED_PER_TURN: Final = 500
_TRANSACTIONAL_ID: Final = "transactional id"

Errors = Mapping[TopicPartition, ErrorCode]


def _nothing() -> None:
    pass


class TransactionCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        cluster: Cluster,
        clock: Clock,
        producer_ids: ProducerIds,
        markers: Markers,
        create_internal_topic: CreateInternalTopic,
        at_end_of_turn: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`at_end_of_turn` makes the server call `carry_out` after this turn's callbacks; `spawn` runs coroutines."""
        self._config = config
        self._replicas = replicas
        self._cluster = cluster
        self._clock = clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._create_internal_topic = create_internal_topic
        self._at_end_of_turn = at_end_of_turn
        self._spawn = spawn
        self._set_aside = replicas.set_aside
        self._more_to_expire = Later(clock, lambda: 0, self.expire)
        self._checks = (
            Every(
                clock,
                lambda: config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.abort_timed_out,
            ),
            Every(clock, lambda: config.transaction_remove_expired_transaction_cleanup_interval_ms, self.expire),
        )
        self._runtime = CoordinatorRuntime(
            TRANSACTION_STATE,
            replicas,
            self._make_shard,
            read_record,
            kind=_TRANSACTIONAL_ID,
            too_large=ErrorCode.UNKNOWN_SERVER_ERROR,
        )
        self.now_ms = clock.now_ms

    def start(self) -> None:
        self._runtime.load()
        for check in self._checks:
            check.start()

    def stop(self) -> None:
        """Leave everything to the next start, including queued operations."""
        for check in (*self._checks, self._more_to_expire):
            check.cancel()
        self._runtime.unload()

    def on_leader(self, partition: Partition) -> None:
        self._runtime.on_leader(partition)

    def on_not_leader(self, partition: Partition) -> None:
        self._runtime.on_not_leader(partition)

    def _make_shard(self, carry_out: Callable[[CoordinatorResult], None]) -> TransactionShard:
        return TransactionShard(self._finish_loaded, ClockTimers(self._clock, self._timer_failed))

    def _timer_failed(self, key: Hashable, error: Exception) -> None:
        """Timers are keyed by what they do and by the id that they do it for."""
        _, transactional_id = cast(tuple[str, str], key)
        self._set_aside.add(_TRANSACTIONAL_ID, transactional_id, error)

    async def ensure_topic(self) -> ErrorCode:
        """Have the controller, whichever broker that is, create the topic that stores transactions when it is first
        needed."""
        if self._cluster.topic(TRANSACTION_STATE) is None:
            error = await self._create_internal_topic(TRANSACTION_STATE)
            if error:
                return error
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
        """Decide and write the operations of this turn of the loop."""
        self._runtime.carry_out_asked()

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, producer_id: int, producer_epoch: int, answer: AnswerProducer
    ) -> None:
        """Give a producer an id and an epoch. It may name those that it has (KIP-360), or -1."""
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
        """Add partitions to the producer's transaction, and start one if there is none."""
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
        done: Callable[[Errors], None],
    ) -> None:
        """Report whether each partition is part of the producer's transaction.

        That must be committed: a new coordinator that did not know about a partition would not end the transaction
        there.
        """
        if not transactional_id:
            done(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
            return
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            done(dict.fromkeys(partitions, found))
            return
        index, shard = found
        current = shard.transactions.get(transactional_id)
        error = decisions.objection(current, producer_id, producer_epoch)
        if error or current is None:
            errors = dict.fromkeys(partitions, error)
        else:
            errors = {
                partition: ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
                for partition in partitions
            }
        self._runtime.when_committed(index, lambda error: done(dict.fromkeys(partitions, error) if error else errors))

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
        """Commit or abort. Returns False and does nothing if that needs a new producer id and none was given."""
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

    def finish(self, index: int, prepared: TransactionMetadata, then: Finished = ignore) -> None:
        """Carry out the decided end of a transaction.

        `then` is called once: the end is complete, or something delays it. It is carried out in any case.
        """
        shard = self._runtime.shards.get(index)
        if shard is None:
            then(False)
        else:
            Ending(self, self._markers, index, shard, prepared, then).begin()

    def _finish_loaded(self, prepared: TransactionMetadata) -> None:
        # By the shard itself: a broker that has just started may not know yet how many partitions the topic has.
        for index, shard in self._runtime.shards.items():
            if shard.transactions.get(prepared.transactional_id) is prepared:
                try:
                    self.finish(index, prepared)
                except Exception as error:
                    self._set_aside.add(_TRANSACTIONAL_ID, prepared.transactional_id, error)
                return

    def coordinator_epoch(self, index: int) -> int:
        """The epoch of markers: a partition refuses those of an older one."""
        return self._runtime.leader_epoch(index)

    def coordinates(self, index: int, shard: TransactionShard) -> bool:
        """Whether this broker has coordinated a shard without a break since it was loaded."""
        return self._runtime.shards.get(index) is shard

    # --- time ---

    def abort_timed_out(self) -> None:
        """Abort transactions that have exceeded their timeout."""
        now_ms = self.now_ms()
        for index, shard in self._runtime.shards.items():
            for transactional_id in self._ids_where(shard, lambda metadata: decisions.is_timed_out(metadata, now_ms)):
                if shard.transactions[transactional_id].is_epoch_exhausted:
                    self._spawn(self._abort_with_new_id(index, transactional_id))
                else:
                    self.ask(index, AbortTimedOut(self, index, transactional_id))

    async def _abort_with_new_id(self, index: int, transactional_id: str) -> None:
        """Abort the last transaction of a producer id. Its producer may continue with the next id."""
        with suppress(ProducerIdsUnavailable):  # then the next check tries again
            new_producer_id = await self._producer_ids.next()
            self.ask(index, AbortTimedOut(self, index, transactional_id, new_producer_id))

    def expire(self) -> None:
        """Forget ids that have been idle for long: some in this turn of the loop, the others in the next ones."""
        now_ms = self.now_ms()
        kept_ms = self._config.transactional_id_expiration_ms
        for index, shard in self._runtime.shards.items():
            expired = self._ids_where(shard, lambda metadata: decisions.is_expired(metadata, kept_ms, now_ms))
            some = expired[:_EXPIRED_PER_TURN]
            for transactional_id in some:
                more = len(expired) > len(some) and transactional_id is some[-1]
                self.ask(index, Expire(transactional_id, kept_ms, now_ms, self._expire_more if more else _nothing))

    def _expire_more(self) -> None:
        self._more_to_expire.cancel()
        self._more_to_expire.start()

    def _ids_where(self, shard: TransactionShard, are: Callable[[TransactionMetadata], bool]) -> list[str]:
        """The ids of a shard that match, except those that were set aside."""
        found = []
        for transactional_id, metadata in shard.transactions.items():
            if (_TRANSACTIONAL_ID, transactional_id) not in self._set_aside:
                try:
                    if are(metadata):
                        found.append(transactional_id)
                except Exception as error:
                    self._set_aside.add(_TRANSACTIONAL_ID, transactional_id, error)
        return found

    # --- looking ---

    def describe(self, transactional_id: str) -> TransactionMetadata | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        found = self._runtime.shard_of(transactional_id)
        if isinstance(found, ErrorCode):
            return found
        return found[1].transactions.get(transactional_id) or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def all_committed(self, transactional_ids: Collection[str] | None) -> bool:
        """Whether answers about these ids, or with None about all, need not wait for replicas."""
        return self._runtime.all_committed(self._runtime.indexes_of(transactional_ids))

    def when_all_committed(self, transactional_ids: Collection[str] | None, then: Callable[[bool], None]) -> None:
        """Call back when everything that was decided so far is committed; with False if some of it never is."""
        self._runtime.when_all_committed(self._runtime.indexes_of(transactional_ids), then)

    def shards(self) -> list[TransactionShard]:
        return list(self._runtime.shards.values())

    @property
    def is_loading(self) -> bool:
        return self._runtime.is_loading

    def all_transactions(self) -> Iterator[TransactionMetadata] | ErrorCode:
        if self._runtime.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return (metadata for shard in self._runtime.shards.values() for metadata in shard.transactions.values())

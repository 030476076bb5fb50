"""The share coordinator: keeps the state of share partitions in __share_group_state.

Any broker asks it, through the persister: leaders of partitions for what they have delivered, group coordinators for
where their groups begin. Each share partition is decided for itself, whatever request it came in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from barnabas.broker.clock import Clock, Every
from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.cluster_image import ClusterChange
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.coordinator.cluster import Cluster, CreateInternalTopic
from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.runtime import CoordinatorRuntime
from barnabas.broker.internal_topics import SHARE_GROUP_STATE
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.server.pieces import spread
from barnabas.broker.share.error_texts import text_of
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.records import Snapshot, read_record
from barnabas.broker.share.shard import Refusal, ShareShard, Write
from barnabas.broker.share.state_batches import StateBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    delete_share_group_state as deleting,
)
from barnabas.protocol.messages import (
    initialize_share_group_state as initializing,
)
from barnabas.protocol.messages import (
    read_share_group_state as reading,
)
from barnabas.protocol.messages import (
    read_share_group_state_summary as summarizing,
)
from barnabas.protocol.messages import (
    write_share_group_state as writing,
)
from barnabas.storage.errors import StorageError

_SHARE_PARTITION: Final = "share partition"
# More batches than that do not fit into a record, whatever becomes of them.
_MOST_BATCHES: Final = 50_000

R = TypeVar("R")

Decide = Callable[[ShareShard, SharePartitionKey, Any], tuple[Sequence[CoordinatorRecord], R]]
Refuse = Callable[[int, Refusal], R]


class ShareCluster(Cluster, Protocol):
    def topic_by_id(self, topic_id: bytes) -> TopicImage | None: ...


class ShareCoordinator:
    """Coordinates the share partitions whose partition of __share_group_state this broker leads."""

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        cluster: ShareCluster,
        clock: Clock,
        create_internal_topic: CreateInternalTopic,
        at_end_of_turn: Callable[[], None],
    ) -> None:
        """`at_end_of_turn` makes the server call `carry_out` after this turn's callbacks."""
        self._config = config
        self._replicas = replicas
        self._cluster = cluster
        self._clock = clock
        self._create_internal_topic = create_internal_topic
        self._at_end_of_turn = at_end_of_turn
        self._checks = (
            Every(clock, lambda: config.share_coordinator_state_topic_prune_interval_ms, self.prune),
            Every(clock, lambda: config.share_coordinator_cold_partition_snapshot_interval_ms, self.snapshot_cold),
        )
        self._runtime = CoordinatorRuntime(
            SHARE_GROUP_STATE,
            replicas,
            self._make_shard,
            read_record,
            kind=_SHARE_PARTITION,
            with_offsets=True,
            timeout_ms=lambda: config.share_coordinator_write_timeout_ms,
            too_large=ErrorCode.UNKNOWN_SERVER_ERROR,
        )

    def start(self) -> None:
        self._runtime.load()
        self._cluster.subscribe(self._on_change)
        for check in self._checks:
            check.start()

    def stop(self) -> None:
        for check in self._checks:
            check.cancel()
        self._runtime.unload()

    def on_leader(self, partition: Partition) -> None:
        self._runtime.on_leader(partition)

    def on_not_leader(self, partition: Partition) -> None:
        self._runtime.on_not_leader(partition)

    def _make_shard(self, carry_out: Callable[[CoordinatorResult], None]) -> ShareShard:
        return ShareShard(
            lambda: self._config.share_coordinator_snapshot_update_records_per_snapshot,
            self._partition_count,
            self._clock.now_ms,
        )

    def _partition_count(self, topic_id: bytes) -> int:
        topic = self._cluster.topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    async def ensure_topic(self) -> ErrorCode:
        """Create the topic that stores share partitions when it is first needed."""
        if self._cluster.topic(SHARE_GROUP_STATE) is None:
            error = await self._create_internal_topic(SHARE_GROUP_STATE)
            if error:
                return error
        await self._replicas.made(SHARE_GROUP_STATE)
        self._runtime.load()
        return ErrorCode.NONE

    @property
    def shards(self) -> dict[int, ShareShard]:
        return self._runtime.shards

    @property
    def is_loading(self) -> bool:
        return self._runtime.is_loading

    @property
    def has_asked(self) -> bool:
        return self._runtime.has_asked

    def carry_out(self) -> None:
        """Decide and write the operations of this turn of the loop."""
        self._runtime.carry_out_asked()

    # --- requests ---

    async def initialize(
        self, request: initializing.InitializeShareGroupStateRequest
    ) -> initializing.InitializeShareGroupStateResponse:
        results = await self._each(request, _initialize, _not_initialized)
        return initializing.InitializeShareGroupStateResponse(
            results=[
                initializing.InitializeStateResult(topic_id=topic, partitions=each)
                async for topic, each in spread(results)
            ]
        )

    async def read(self, request: reading.ReadShareGroupStateRequest) -> reading.ReadShareGroupStateResponse:
        results = await self._each(request, _read, _not_read)
        return reading.ReadShareGroupStateResponse(
            results=[reading.ReadStateResult(topic_id=topic, partitions=each) async for topic, each in spread(results)]
        )

    async def write(self, request: writing.WriteShareGroupStateRequest) -> writing.WriteShareGroupStateResponse:
        results = await self._each(request, _write, _not_written)
        return writing.WriteShareGroupStateResponse(
            results=[writing.WriteStateResult(topic_id=topic, partitions=each) async for topic, each in spread(results)]
        )

    async def delete(self, request: deleting.DeleteShareGroupStateRequest) -> deleting.DeleteShareGroupStateResponse:
        results = await self._each(request, _delete, _not_deleted)
        return deleting.DeleteShareGroupStateResponse(
            results=[
                deleting.DeleteStateResult(topic_id=topic, partitions=each) async for topic, each in spread(results)
            ]
        )

    async def read_summary(
        self, request: summarizing.ReadShareGroupStateSummaryRequest
    ) -> summarizing.ReadShareGroupStateSummaryResponse:
        results = await self._each(request, _summarize, _not_summarized)
        return summarizing.ReadShareGroupStateSummaryResponse(
            results=[
                summarizing.ReadStateSummaryResult(topic_id=topic, partitions=each)
                async for topic, each in spread(results)
            ]
        )

    async def _each(self, request: Any, decide: Decide[R], refuse: Refuse[R]) -> list[tuple[bytes, list[R]]]:
        """Ask for every partition, and wait until each is decided and committed. As in Kafka, a request without a
        group or without any topic gets an empty answer."""
        if not request.group_id:
            return []
        results: list[tuple[bytes, list[R]]] = []
        asked: list[_Operation[R]] = []
        left = 1
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def one_is_done() -> None:
            nonlocal left
            left -= 1
            if not left and not over.done():
                over.set_result(None)

        places: list[tuple[list[R], int]] = []
        async for topic in spread(request.topics):
            answers: list[R] = []
            results.append((topic.topic_id, answers))
            async for data in spread(topic.partitions):
                key = SharePartitionKey(request.group_id, topic.topic_id, data.partition)
                found = self._runtime.shard_of(key.coordinator_key)
                if isinstance(found, ErrorCode):
                    answers.append(refuse(data.partition, Refusal(found)))
                    continue
                operation = _Operation(key, data, decide, refuse, one_is_done)
                places.append((answers, len(answers)))
                answers.append(operation.refused(ErrorCode.UNKNOWN_SERVER_ERROR))
                asked.append(operation)
                left += 1
                self._runtime.ask(found[0], operation)
                self._at_end_of_turn()
        one_is_done()
        await over
        async for (answers, place), operation in spread(zip(places, asked, strict=True)):
            answers[place] = operation.result
        return results

    # --- housekeeping ---

    def _on_change(self, change: ClusterChange) -> None:
        """Forget the share partitions of topics that were deleted."""
        gone = {
            topic.old.topic_id
            for topic in change.topics.values()
            if topic.old is not None and (topic.new is None or topic.new.topic_id != topic.old.topic_id)
        }
        if gone:
            for index, shard in self._runtime.shards.items():
                self._runtime.carry_out_in_parts(index, shard.forget_topics(gone))

    def snapshot_cold(self) -> None:
        interval_ms = self._config.share_coordinator_cold_partition_snapshot_interval_ms
        for index, shard in self._runtime.shards.items():
            self._runtime.carry_out_in_parts(index, shard.cold_snapshots(interval_ms))

    def prune(self) -> None:
        """Delete records that newer snapshots have made redundant, once these are committed: a new leader that does
        not have them needs the old ones."""
        for partition in self._replicas.of_topic(SHARE_GROUP_STATE):
            shard = self._runtime.shards.get(partition.index)
            if shard is not None and partition.leadership is not None:
                offset = shard.first_needed_offset(partition.log.end_offset)
                self._runtime.when_committed(partition.index, partial(self._delete_below, partition, offset))

    def _delete_below(self, partition: Partition, offset: int, error: ErrorCode) -> None:
        log = partition.log
        if error or offset <= log.log_start_offset:
            return
        try:
            log.increment_log_start_offset(offset)
        except (StorageError, OSError) as failure:
            self._replicas.set_aside.add("prune", str(log.topic_partition), failure)


class _Operation(Generic[R]):
    """What a request wants of one share partition."""

    def __init__(
        self,
        key: SharePartitionKey,
        data: Any,
        decide: Decide[R],
        refuse: Refuse[R],
        then: Callable[[], None],
    ) -> None:
        self._partition = key
        self._data = data
        self._decide = decide
        self._refuse = refuse
        self._then = then
        self.result: R

    @property
    def key(self) -> str:
        """Not kept: a request may name very many partitions of a group with a very long id."""
        return self._partition.coordinator_key

    def decide(self, shard: ShareShard) -> CoordinatorResult:
        records, self.result = self._decide(shard, self._partition, self._data)
        return CoordinatorResult(records, self.done, key=self.key)

    def done(self, error: ErrorCode) -> None:
        if error:
            self.result = self.refused(error)
        self._then()

    def refused(self, error: ErrorCode) -> R:
        return self._refuse(self._partition.partition, Refusal(error))


# --- one partition of each kind of request ---


def _initialize(
    shard: ShareShard, key: SharePartitionKey, data: initializing.PartitionData
) -> tuple[Sequence[CoordinatorRecord], initializing.PartitionResult]:
    decided = shard.initialize(key, data.state_epoch, data.start_offset)
    if isinstance(decided, Refusal):
        return (), _not_initialized(key.partition, decided)
    return (decided,), initializing.PartitionResult(partition=key.partition)


def _not_initialized(partition: int, refusal: Refusal) -> initializing.PartitionResult:
    return initializing.PartitionResult(partition=partition, error_code=refusal.error, error_message=_text(refusal))


def _read(
    shard: ShareShard, key: SharePartitionKey, data: reading.PartitionData
) -> tuple[Sequence[CoordinatorRecord], reading.PartitionResult]:
    decided = shard.read(key, data.leader_epoch)
    if isinstance(decided, Refusal):
        return (), _not_read(key.partition, decided)
    snapshot, record = decided
    return () if record is None else (record,), reading.PartitionResult(
        partition=key.partition,
        state_epoch=snapshot.state_epoch,
        start_offset=snapshot.start_offset,
        state_batches=[
            reading.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in snapshot.batches
        ],
    )


def _not_read(partition: int, refusal: Refusal) -> reading.PartitionResult:
    return reading.PartitionResult(
        partition=partition,
        error_code=refusal.error,
        error_message=_text(refusal),
        state_epoch=0,
        start_offset=0,
        state_batches=[],
    )


def _write(
    shard: ShareShard, key: SharePartitionKey, data: writing.PartitionData
) -> tuple[Sequence[CoordinatorRecord], writing.PartitionResult]:
    if len(data.state_batches) > _MOST_BATCHES:
        return (), _not_written(key.partition, Refusal(ErrorCode.UNKNOWN_SERVER_ERROR))
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in data.state_batches
    ]
    write = Write(data.state_epoch, data.leader_epoch, data.start_offset, data.delivery_complete_count, batches)
    decided = shard.write(key, write)
    if isinstance(decided, Refusal):
        return (), _not_written(key.partition, decided)
    return (decided,), writing.PartitionResult(partition=key.partition)


def _not_written(partition: int, refusal: Refusal) -> writing.PartitionResult:
    return writing.PartitionResult(partition=partition, error_code=refusal.error, error_message=_text(refusal))


def _delete(
    shard: ShareShard, key: SharePartitionKey, data: deleting.PartitionData
) -> tuple[Sequence[CoordinatorRecord], deleting.PartitionResult]:
    decided = shard.delete(key)
    if isinstance(decided, Refusal):
        return (), _not_deleted(key.partition, decided)
    return () if decided is None else (decided,), deleting.PartitionResult(partition=key.partition)


def _not_deleted(partition: int, refusal: Refusal) -> deleting.PartitionResult:
    return deleting.PartitionResult(partition=partition, error_code=refusal.error, error_message=_text(refusal))


_NEVER_INITIALIZED: Final = Snapshot(0, 0, 0, -1, -1, 0, 0)


def _summarize(
    shard: ShareShard, key: SharePartitionKey, data: summarizing.PartitionData
) -> tuple[Sequence[CoordinatorRecord], summarizing.PartitionResult]:
    decided = shard.read_summary(key)
    if isinstance(decided, Refusal):
        return (), _not_summarized(key.partition, decided)
    snapshot = decided or _NEVER_INITIALIZED
    return (), summarizing.PartitionResult(
        partition=key.partition,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
    )


def _not_summarized(partition: int, refusal: Refusal) -> summarizing.PartitionResult:
    return summarizing.PartitionResult(
        partition=partition,
        error_code=refusal.error,
        error_message=_text(refusal),
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
    )


def _text(refusal: Refusal) -> str:
    return refusal.message or text_of(refusal.error)

"""The group coordinator: finds the shard of a group, asks it, and carries out its decisions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final, TypeVar, cast

from barnabas.broker.background import Background
from barnabas.broker.clock import Clock, Every
from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.cluster_image import ClusterChange, ClusterImage, TopicChange
from barnabas.broker.coordinator.cluster import CreateInternalTopic
from barnabas.broker.coordinator.key_hash import partition_of
from barnabas.broker.coordinator.result import CoordinatorRecord, CoordinatorResult, ProducerIdAndEpoch
from barnabas.broker.coordinator.runtime import CoordinatorRuntime
from barnabas.broker.coordinator.timers import ClockTimers
from barnabas.broker.coordinator.transactional import TransactionEnd
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.responses import join_error, sync_error
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.regexes import MayDescribe
from barnabas.broker.group.consumer.requests import heartbeat_error
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset, read_record
from barnabas.broker.group.shard import GroupShard
from barnabas.broker.group.share.offsets import Alteration, AnswerAlter, AnswerDelete, alter_error, delete_error
from barnabas.broker.group.share.requests import heartbeat_error as share_heartbeat_error
from barnabas.broker.group.streams.configuration import InternalTopic
from barnabas.broker.group.streams.requests import heartbeat_error as streams_heartbeat_error
from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.broker.share.persister import ShareState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.topic_partition import TopicPartition

Done = Callable[[ErrorCode], None]

_GROUP: Final = "group"

R = TypeVar("R")


class GroupCoordinator:
    """Coordinates the groups whose partition of __consumer_offsets this broker leads.

    Answers wait until what they rest on is committed, except those to heartbeats: they tell a member to stay or to join
    again, as a new coordinator will, and must not stop while replicas are slow.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        cluster: ClusterImage,
        clock: Clock,
        create_internal_topic: CreateInternalTopic,
        set_for_group: Callable[[str], Mapping[str, str]],
        share_state: ShareState,
    ) -> None:
        """`set_for_group` gives the settings that were set for a group."""
        self._config = config
        self._replicas = replicas
        self._cluster = cluster
        self._clock = clock
        self._create_internal_topic = create_internal_topic
        self._set_for_group = set_for_group
        self._share_state = share_state
        self._background = Background("the state of a share group failed")
        self._set_aside = replicas.set_aside
        self._expiry = Every(clock, lambda: config.offsets_retention_check_interval_ms, self.expire_offsets)
        self._runtime = CoordinatorRuntime(
            CONSUMER_OFFSETS,
            replicas,
            self._make_shard,
            read_record,
            kind=_GROUP,
            in_transactions=True,
            timeout_ms=lambda: config.offsets_commit_timeout_ms,
        )

    def start(self) -> None:
        self._runtime.load()
        self._cluster.subscribe(self._on_change)
        self._expiry.start()

    def stop(self) -> None:
        self._expiry.cancel()
        self._background.cancel()
        self._runtime.unload()

    def on_leader(self, partition: Partition) -> None:
        self._runtime.on_leader(partition)

    def on_not_leader(self, partition: Partition) -> None:
        self._runtime.on_not_leader(partition)

    def _make_shard(self, carry_out: Callable[[CoordinatorResult], None]) -> GroupShard:
        timers = ClockTimers(self._clock, self._timer_failed)
        return GroupShard(
            self._config,
            timers,
            carry_out,
            self._clock.now_ms,
            lambda: str(uuid.uuid4()),
            self._cluster,
            self._set_for_group,
            self._share_state,
            self._background,
        )

    def _timer_failed(self, key: Hashable, error: Exception) -> None:
        """Timers are scheduled under a group's id and what they wait for."""
        self._set_aside.add(_GROUP, cast(tuple[str, ...], key)[0], error)

    def _on_change(self, change: ClusterChange) -> None:
        gone = {
            name: old.topic_id
            for name, (old, new) in change.topics.items()
            if old is not None and (new is None or new.topic_id != old.topic_id)
        }
        if gone and CONSUMER_OFFSETS not in gone:
            for index, shard in self._runtime.shards.items():
                self._runtime.carry_out_in_parts(index, shard.forget_topics(gone))
        changed = {name for name, topic in change.topics.items() if _affects_assignments(topic)}
        if changed or change.brokers:
            are_new = any(change.topics[name].old is None for name in changed)
            names = changed if changed and not change.brokers else self._cluster.topics.keys()
            for shard in self._runtime.shards.values():
                shard.topics_changed(names, are_new)

    async def ensure_topic(self) -> ErrorCode:
        """Create the topic that stores groups when it is first needed, by whichever broker is the controller."""
        if self._cluster.topic(CONSUMER_OFFSETS) is None:
            error = await self._create_internal_topic(CONSUMER_OFFSETS)
            if error:
                return error
        await self._replicas.made(CONSUMER_OFFSETS)
        self._runtime.load()
        return ErrorCode.NONE

    def objection(self, group_id: str) -> ErrorCode:
        """Why this broker cannot answer for a group now."""
        found = self._runtime.shard_of(group_id)
        return found if isinstance(found, ErrorCode) else ErrorCode.NONE

    def shard(self, group_id: str) -> GroupShard:
        """The shard of a group that `objection` has passed."""
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            raise LookupError(f"no shard for group {group_id}: {found.name}")
        return found[1]

    def partition_of(self, group_id: str) -> int:
        """The partition of __consumer_offsets for a group, even before that topic exists."""
        topic = self._cluster.topic(CONSUMER_OFFSETS)
        count = self._config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
        return partition_of(group_id, count)

    def all_committed(self, group_ids: Collection[str] | None) -> bool:
        """Whether answers about these groups, or with None about all, need not wait for replicas."""
        return self._runtime.all_committed(self._runtime.indexes_of(group_ids))

    def when_all_committed(self, group_ids: Collection[str] | None, then: Callable[[bool], None]) -> None:
        """Call back when everything that was decided so far is committed; with False if some of it never is."""
        self._runtime.when_all_committed(self._runtime.indexes_of(group_ids), then)

    def _when_committed(
        self, index: int, answer: Callable[[R], None], refuse: Callable[[ErrorCode], R]
    ) -> Callable[[R], None]:
        """`answer`, once everything that the response may rest on is committed; otherwise what `refuse` makes."""

        def tell(response: R) -> None:
            self._runtime.when_committed(index, lambda error: answer(refuse(error) if error else response))

        return tell

    @property
    def shards(self) -> Collection[GroupShard]:
        return self._runtime.shards.values()

    @property
    def is_loading(self) -> bool:
        return self._runtime.is_loading

    # --- membership ---

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(join_error(found, request.member_id))
        else:
            index, shard = found
            answer = self._when_committed(index, answer, lambda error: join_error(error, request.member_id))
            self._runtime.carry_out(index, shard.join(request, client, answer))

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(sync_error(found))
        else:
            index, shard = found
            answer = self._when_committed(index, answer, sync_error)
            self._runtime.carry_out(index, shard.sync(request, answer))

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: ClientInfo,
        may_describe: MayDescribe,
        answer: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(heartbeat_error(found))
            return
        index, shard = found
        response, decision = shard.consumers.heartbeat(request, client, may_describe)

        def done(error: ErrorCode) -> None:
            decision.done(error)
            answer(heartbeat_error(error) if error else response)

        self._runtime.carry_out(index, CoordinatorResult(decision.records, done, key=decision.key))

    def share_heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        client: ClientInfo,
        answer: Callable[[ShareGroupHeartbeatResponse], None],
    ) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(share_heartbeat_error(found))
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.shares.heartbeat_of(request, client, answer))

    def streams_heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        client: ClientInfo,
        answer: Callable[[StreamsGroupHeartbeatResponse, Sequence[InternalTopic]], None],
    ) -> None:
        """The answer comes with the application's topics that are to be created."""
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(streams_heartbeat_error(found), ())
            return
        index, shard = found
        answered = shard.streams.heartbeat(request, client)

        def done(error: ErrorCode) -> None:
            answered.decision.done(error)
            if error:
                too_large = error == ErrorCode.MESSAGE_TOO_LARGE  # a topology that no record can hold
                answer(streams_heartbeat_error(ErrorCode.UNKNOWN_SERVER_ERROR if too_large else error), ())
            else:
                answer(answered.response, answered.missing)

        self._runtime.carry_out(index, answered.decision._replace(done=done))

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            # A member of a group that is being loaded counts as alive; it need not know about the load.
            return ErrorCode.NONE if found == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else found
        return found[1].heartbeat(request)

    def leave(self, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        """The answer, which counts once what was decided is committed."""
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            return LeaveGroupResponse(error_code=found)
        index, shard = found
        response, decision = shard.leave(request, version)
        self._runtime.carry_out(index, decision)
        return response

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        by: Committer,
        offsets: Sequence[tuple[TopicPartition, CommittedOffset]],
        done: Done,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """With a producer, as part of its transaction."""
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.commit(group_id, by, offsets, done, producer))

    def end_transaction(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker has been written to a partition of __consumer_offsets."""
        self._runtime.end_transaction(index, TransactionEnd(producer_id, committed))

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """The error of the whole and one each, which count once what was decided is committed."""
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            return found, {}
        index, shard = found
        error, errors, decision = shard.delete_offsets(group_id, partitions)
        failures: list[ErrorCode] = []
        self._runtime.carry_out(index, decision._replace(done=failures.append))
        return error or (failures[0] if failures else ErrorCode.NONE), errors

    def alter_share_offsets(self, group_id: str, wanted: Alteration, answer: AnswerAlter) -> None:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            answer(alter_error(found))
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.shares.offsets.alter(group_id, wanted, answer))

    def delete_share_offsets(self, request: DeleteShareGroupOffsetsRequest, answer: AnswerDelete) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(delete_error(found))
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.shares.offsets.delete(request, answer))

    def expire_offsets(self) -> None:
        kept_ms = self._config.offsets_retention_minutes * 60_000
        for index, shard in self._runtime.shards.items():
            records: list[CoordinatorRecord] = []
            for group_id in shard.groups:
                if (_GROUP, group_id) not in self._set_aside:
                    try:
                        records += shard.expire(group_id, kept_ms)
                    except Exception as error:
                        self._set_aside.add(_GROUP, group_id, error)
            self._runtime.carry_out_in_parts(index, records)

    # --- groups ---

    def delete_group(self, group_id: str, done: Done) -> None:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.delete_group(group_id, done))


def _affects_assignments(change: TopicChange) -> bool:
    """Whether a topic is new, gone, or has other partitions or replicas."""
    old, new = change
    if old is None or new is None or old.topic_id != new.topic_id:
        return True
    return [each.replica_nodes for each in old.partitions] != [each.replica_nodes for each in new.partitions]

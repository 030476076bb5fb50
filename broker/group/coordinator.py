"""The group coordinator: finds the shard that a group belongs to, asks it, and has its decisions carried out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence

from broker.clock import Clock, Every
from broker.config import BrokerConfig
from broker.controller.controller import Controller
from broker.controller.view import ClusterChange, ClusterView
from broker.coordinator.decision import Decision, ProducerIdAndEpoch
from broker.coordinator.runtime import CoordinatorRuntime, partition_of
from broker.coordinator.timers import ClockTimers
from broker.coordinator.transactional import TransactionEnd
from broker.group.answers import join_error, sync_error
from broker.group.member import AnswerJoin, AnswerSync
from broker.group.membership import ClientInfo
from broker.group.records import CommittedOffset, Partition
from broker.group.shard import GroupShard, read_record
from broker.internal_topics import CONSUMER_OFFSETS, new_topic
from broker.replica.replicas import Replicas
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.list_groups import ListedGroup
from protocol.messages.sync_group import SyncGroupRequest

Done = Callable[[ErrorCode], None]


class GroupCoordinator:
    def __init__(
        self, config: BrokerConfig, replicas: Replicas, controller: Controller, cluster: ClusterView, clock: Clock
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._controller = controller
        self._cluster = cluster
        self._clock = clock
        self._timers = ClockTimers(clock)
        self._expiry = Every(clock, lambda: config.offsets_retention_check_interval_ms, self.expire_offsets)
        self._runtime = CoordinatorRuntime(CONSUMER_OFFSETS, replicas, self._make_shard, read_record)

    def start(self) -> None:
        self._runtime.load()
        self._cluster.subscribe(self._on_change)
        self._expiry.start()

    def stop(self) -> None:
        self._expiry.cancel()
        self._timers.cancel_all()

    def _make_shard(self, carry_out: Callable[[Decision], None]) -> GroupShard:
        return GroupShard(self._config, self._timers, carry_out, self._clock.now_ms, lambda: str(uuid.uuid4()))

    def _on_change(self, change: ClusterChange) -> None:
        gone = {name for name, topic in change.topics.items() if topic.new is None}
        if CONSUMER_OFFSETS in gone:
            self._timers.cancel_all()
            self._runtime.unload()
        elif gone:
            for index, shard in self._runtime.shards.items():
                self._runtime.carry_out_in_parts(index, shard.forget_topics(gone))

    async def ensure_topic(self) -> ErrorCode:
        """Make the topic that groups are kept in, when it is first needed."""
        if self._cluster.topic(CONSUMER_OFFSETS) is None:
            error = await self._create_topic()
            if error:
                return error
        await self._replicas.made(CONSUMER_OFFSETS)
        self._runtime.load()
        return ErrorCode.NONE

    async def _create_topic(self) -> ErrorCode:
        topic = new_topic(CONSUMER_OFFSETS, self._config)
        (result,) = await self._controller.create_topics([topic])
        if result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    def objection(self, group_id: str) -> ErrorCode:
        """Why this broker cannot answer for a group now."""
        found = self._runtime.shard_of(group_id)
        return found if isinstance(found, ErrorCode) else ErrorCode.NONE

    def shard(self, group_id: str) -> GroupShard:
        """The shard of a group that there is no objection to."""
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            raise LookupError(f"no shard for group {group_id}: {found.name}")
        return found[1]

    def partition_of(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to, or will belong to once there is that topic."""
        count = len(self._replicas.of_topic(CONSUMER_OFFSETS)) or self._config.offsets_topic_num_partitions
        return partition_of(group_id, count)

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
            self._runtime.carry_out(index, shard.membership.join(request, client, answer))

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> None:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            answer(sync_error(found))
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.membership.sync(request, answer))

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            # A member of a group that is being loaded is alive; it need not know.
            return ErrorCode.NONE if found == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else found
        return found[1].membership.heartbeat(request)

    def leave(self, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        found = self._runtime.shard_of(request.group_id)
        if isinstance(found, ErrorCode):
            return LeaveGroupResponse(error_code=found)
        index, shard = found
        response, decision = shard.membership.leave(request, version)
        self._runtime.carry_out(index, decision)
        return response

    # --- offsets ---

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Sequence[tuple[Partition, CommittedOffset]],
        done: Done,
    ) -> None:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.commit(group_id, member_id, instance_id, generation, offsets, done))

    def commit_in_transaction(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        producer: ProducerIdAndEpoch,
        offsets: Sequence[tuple[Partition, CommittedOffset]],
        done: Done,
    ) -> None:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            index, shard = found
            decision = shard.commit_in_transaction(
                group_id, member_id, instance_id, generation, producer, offsets, done
            )
            self._runtime.carry_out(index, decision)

    def end_transaction(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker has been written to a partition of __consumer_offsets."""
        self._runtime.end_transaction(index, TransactionEnd(producer_id, committed))

    def delete_offsets(
        self, group_id: str, partitions: Sequence[Partition]
    ) -> tuple[ErrorCode, dict[Partition, ErrorCode]]:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            return found, {}
        index, shard = found
        error, errors, decision = shard.delete_offsets(group_id, partitions)
        self._runtime.carry_out(index, decision)
        return error, errors

    def expire_offsets(self) -> None:
        kept_ms = self._config.offsets_retention_minutes * 60_000
        for index, shard in self._runtime.shards.items():
            self._runtime.carry_out_in_parts(index, shard.expire(kept_ms))

    # --- groups ---

    def list_groups(self) -> list[ListedGroup] | ErrorCode:
        if self._runtime.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [listed for shard in self._runtime.shards.values() for listed in shard.list_groups()]

    def delete_group(self, group_id: str, done: Done) -> None:
        found = self._runtime.shard_of(group_id)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            index, shard = found
            self._runtime.carry_out(index, shard.delete_group(group_id, done))

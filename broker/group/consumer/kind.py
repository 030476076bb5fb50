"""The consumer groups of a shard. Some of their members may speak the classic protocol."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.responses import identities_of, leave_answer
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer import replay
from barnabas.broker.group.consumer.classic_members import ClassicMembers
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.membership import Adopt, ConsumerMembership
from barnabas.broker.group.consumer.settings import GroupTimes
from barnabas.broker.group.kind import GroupKind
from barnabas.broker.group.of_kind import GroupsOfRecords, Surroundings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class ConsumerGroups(GroupsOfRecords):
    kind = GroupKind.CONSUMER
    group_type = ConsumerGroup
    keys = replay.APPLY.keys()
    apply = replay.APPLY
    ends = replay.ENDS_GROUP
    ends_member = replay.ENDS_MEMBER

    def __init__(self, around: Surroundings, adopt: Adopt) -> None:
        super().__init__(around)
        self.membership = ConsumerMembership(
            around.groups,
            around.settings,
            GroupTimes(around.settings, around.set_for_group),
            around.topics,
            around.timers,
            around.carry_out,
            adopt,
            around.now_ms,
            around.new_id,
        )
        self._classic_members = ClassicMembers(self.membership, around.settings, around.topics, around.timers)
        self._new_id = around.new_id

    def loaded(self) -> None:
        self.membership.watch_all()

    def forget(self, group: ConsumerGroup) -> None:
        self.membership.forget(group)

    def forget_member(self, group_id: str, member_id: str) -> None:
        self.membership.forget_member(group_id, member_id)

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        self.membership.topics_changed(names, are_new)

    def _group(self, group_id: str) -> ConsumerGroup:
        return cast(ConsumerGroup, self.groups[group_id])

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> CoordinatorResult:
        return self._classic_members.join(self._group(request.group_id), request, client, answer, self._new_id())

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        return self._classic_members.sync(self._group(request.group_id), request, answer)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        return self._classic_members.heartbeat(self._group(request.group_id), request)

    def leave(self, request: LeaveGroupRequest, version: int) -> tuple[LeaveGroupResponse, CoordinatorResult]:
        identities = identities_of(request, version)
        errors, decision = self.membership.leave(self._group(request.group_id), identities)
        return leave_answer(identities, errors, version), decision

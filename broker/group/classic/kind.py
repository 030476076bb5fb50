"""The classic groups of a shard."""

from __future__ import annotations

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.loading import load
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.membership import Membership
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import GroupKind
from barnabas.broker.group.of_kind import GroupsOfKind, Surroundings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.group_records import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class ClassicGroups(GroupsOfKind):
    kind = GroupKind.CLASSIC
    keys = (GroupMetadataKey,)

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self.membership = Membership(
            around.groups, around.settings, around.timers, around.carry_out, around.now_ms, around.new_id
        )
        self._is_loaded = False

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """For a live group, this brings the assignments; for one that is being loaded, everything."""
        group = self.groups.get(key.group)
        if value is None:
            if isinstance(group, Group):
                self.remove(group)
        elif not self._is_loaded:
            self.groups[key.group] = load(key.group, value)
        elif isinstance(group, Group):
            for found in value.members:
                if found.member_id in group.members:
                    group.members[found.member_id].assignment = found.assignment
        else:
            self.membership.adopted(key.group)

    def loaded(self) -> None:
        self._is_loaded = True
        self.membership.watch_all()

    def unloaded(self) -> None:
        self.membership.abandon()

    def forget(self, group: Group) -> None:
        self.membership.forget(group)

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> CoordinatorResult:
        return self.membership.join(request, client, answer)

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        return self.membership.sync(request, answer)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        return self.membership.heartbeat(request)

    def leave(self, request: LeaveGroupRequest, version: int) -> tuple[LeaveGroupResponse, CoordinatorResult]:
        return self.membership.leave(request, version)

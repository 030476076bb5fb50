"""What a shard asks of the groups of one kind. A kind is a package with its state machine, its records, and this."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from barnabas.broker.coordinator.result import NOTHING_TO_DO, CoordinatorRecord, CoordinatorResult
from barnabas.broker.coordinator.timers import Timers
from barnabas.broker.group.classic.member import AnswerJoin, AnswerSync
from barnabas.broker.group.classic.responses import identities_of, join_error, leave_answer, sync_error
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import AnyGroup, GroupKind
from barnabas.broker.group.topics import Topics
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class Surroundings(NamedTuple):
    """What the groups of every kind in one shard share."""

    groups: dict[str, AnyGroup]
    settings: Any  # the broker's; each kind says in a protocol which of them it reads
    set_for_group: Callable[[str], Mapping[str, str]]  # the settings that were set for a group
    topics: Topics
    timers: Timers
    carry_out: Callable[[CoordinatorResult], None]  # for decisions made by timers, which no client waits for
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


class GroupsOfKind:
    """The groups of one kind in a shard."""

    kind: ClassVar[GroupKind]
    keys: ClassVar[Collection[type]]
    """The keys of their records."""

    def __init__(self, around: Surroundings) -> None:
        self.groups = around.groups

    # --- durable state ---

    def replay(self, key: Any, value: Any) -> None:
        """Make the change that a record with one of these keys says; without a value, a tombstone."""
        raise NotImplementedError

    def loaded(self) -> None:
        """All records have been replayed: from now on members must send heartbeats."""

    def unloaded(self) -> None:
        """The groups are coordinated elsewhere: answer everyone who waits."""

    def remove(self, group: AnyGroup) -> None:
        del self.groups[group.group_id]
        self.forget(group)

    def forget(self, group: Any) -> None:
        """A group is gone: cancel its timers."""

    def prepare_deletion(self, group: Any, go_on: Callable[[ErrorCode], None]) -> CoordinatorResult | None:
        """What has to be done elsewhere before a group is deleted, which ends with `go_on`. None if that is nothing."""
        return None

    # --- the cluster ---

    def topics_changed(self, names: Collection[str], are_new: bool) -> None:
        """These topics are others than before, or in other places."""

    def topics_deleted(self, topic_ids: Collection[bytes]) -> Sequence[CoordinatorRecord]:
        """What groups forget with these topics, beside the offsets."""
        return ()

    # --- the classic protocol, which a group of another kind mostly does not understand ---

    def join(self, request: JoinGroupRequest, client: ClientInfo, answer: AnswerJoin) -> CoordinatorResult:
        answer(join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        return NOTHING_TO_DO

    def sync(self, request: SyncGroupRequest, answer: AnswerSync) -> CoordinatorResult:
        answer(sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        return NOTHING_TO_DO

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, request: LeaveGroupRequest, version: int) -> tuple[LeaveGroupResponse, CoordinatorResult]:
        """LeaveGroup, which members of classic groups send, and administrators to groups of other kinds."""
        identities = identities_of(request, version)
        return leave_answer(identities, [ErrorCode.UNKNOWN_MEMBER_ID] * len(identities), version), NOTHING_TO_DO


class GroupsOfRecords(GroupsOfKind):
    """Groups that nothing but replayed records changes, whether they are live or being loaded."""

    group_type: ClassVar[type[Any]]
    apply: ClassVar[Mapping[type, Callable[[Any, Any, Any], None]]]
    """For each key: applies a record to a group."""
    ends: ClassVar[type]
    """A tombstone with this key is the last of a group."""
    ends_member: ClassVar[type[Any]]
    """A tombstone with this key says that a member is gone."""

    def replay(self, key: Any, value: Any) -> None:
        group = self.groups.get(key.group_id)
        if group is None or group.kind is not self.kind:
            if value is None:
                return  # the group has become one of another kind, or is gone
            # A group of which only offsets are known becomes this one.
            group = self.groups[key.group_id] = self.group_type(key.group_id)
        if value is None and isinstance(key, self.ends):
            self.remove(group)
            return
        self.apply[type(key)](group, key, value)
        if value is None and type(key) is self.ends_member:
            self.forget_member(key.group_id, key.member_id)

    def forget_member(self, group_id: str, member_id: str) -> None:
        """A member is gone: cancel its timers."""
        raise NotImplementedError

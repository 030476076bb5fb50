"""Rules for members of groups."""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.states import GroupState
from barnabas.broker.testing.strict.rule import Memory, Rule, Seen
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.protocol.schema import Message

_COORDINATED: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
    }
)
# A client gets this long to read an answer before its next request counts as sent with knowledge of it, and may be told
# the same thing this many times.
_SECONDS_TO_READ: Final = 0.1
_MOST_REPEATS: Final = 3
_LEAVES: Final = -1  # as a member epoch
# For how many groups the last coordinator lookup is remembered.
_REMEMBERED: Final = 10_000


def _membership(message: Any) -> tuple[str, str, int] | None:
    """The group, member and generation of a member's request."""
    if isinstance(message, HeartbeatRequest | SyncGroupRequest):
        return message.group_id, message.member_id, message.generation_id
    if isinstance(message, OffsetCommitRequest) and message.member_id:
        return message.group_id, message.member_id, message.generation_id_or_member_epoch
    if isinstance(message, TxnOffsetCommitRequest) and message.member_id:
        return message.group_id, message.member_id, message.generation_id
    return None


def _beat(message: Any) -> tuple[str, str, int] | None:
    """The group, member and member epoch of a heartbeat of the newer protocols."""
    if isinstance(message, ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest):
        return message.group_id, message.member_id, message.member_epoch
    return None


def _group(seen: Seen, group_id: str) -> Group | None:
    """The group, if it is a classic one: these rules are about generations that members agree on."""
    groups = seen.broker.groups
    group = None if groups.objection(group_id) else groups.shard(group_id).groups.get(group_id)
    return group if isinstance(group, Group) else None


def _is_newer(seen: Seen, group_id: str) -> bool:
    """Whether the group is known here and is not a classic one."""
    groups = seen.broker.groups
    group = None if groups.objection(group_id) else groups.shard(group_id).groups.get(group_id)
    return group is not None and not isinstance(group, Group)


class GenerationGoneBack(Rule):
    """After a rebalance a member uses the new generation and never an older one."""

    name = "generation-gone-back"
    reference = "Kafka protocol guide, Group Membership API: generation ids"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        membership = _membership(seen.message)
        if membership is None or membership[2] < 0:
            return None
        group_id, member_id, generation = membership
        if _is_newer(seen, group_id):
            return None  # its commits have member epochs
        latest = memory.get((group_id, member_id), -1)
        if generation < latest:
            return f"group {group_id}: generation {generation} after the member had used {latest}"
        memory[group_id, member_id] = generation
        return None


class MemberEpochGoneBack(Rule):
    """A member's epoch only rises, until it joins again with epoch 0.

    This is about heartbeats: a commit may have waited for its turn, and counts with an older epoch, too (KIP-1251).
    """

    name = "member-epoch-gone-back"
    reference = "KIP-848, KIP-932 and KIP-1071: member epochs"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        beat = _beat(seen.message)
        if beat is None:
            return None
        group_id, member_id, epoch = beat
        latest = memory.get((group_id, member_id), 0)
        if 0 < epoch < latest:
            return f"group {group_id}: member epoch {epoch} after the member had used {latest}"
        if epoch >= 0:
            memory[group_id, member_id] = epoch
        return None


class GenerationNeverGiven(Rule):
    """Generations come from the coordinator's answers to JoinGroup.

    A group may have been forgotten since and restarted, by a reset or a crash. So only a member that received its
    generation over this very connection is checked.
    """

    name = "generation-never-given"
    reference = "Kafka protocol guide, Group Membership API: JoinGroup's answer gives the generation id"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        membership = _membership(seen.message)
        given = memory.get(membership[:2]) if membership is not None else None
        if membership is None or given is None or membership[2] <= given:
            return None
        group = _group(seen, membership[0])
        if group is None or membership[2] <= group.generation:
            return None
        return f"group {group.group_id}: generation {membership[2]}, and the group is at {group.generation}"

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if isinstance(answer, JoinGroupResponse) and not answer.error_code:
            memory[seen.message.group_id, answer.member_id] = answer.generation_id
        return None


class WrongCoordinator(Rule):
    """A client that gets NOT_COORDINATOR looks for the coordinator before it asks again.

    Clients ask any broker for it, over another connection. So any lookup for the group counts.
    """

    name = "wrong-coordinator"
    reference = "Kafka protocol guide, Group Membership API: FindCoordinator after NOT_COORDINATOR"

    def __init__(self) -> None:
        self._searched: dict[str, float] = {}  # the last lookup of each group's coordinator, the latest at the end

    def request(self, seen: Seen, memory: Memory) -> str | None:
        if seen.key == ApiKey.FIND_COORDINATOR:
            for group_id in seen.subjects.groups:
                self._searched.pop(group_id, None)
                self._searched[group_id] = seen.now
            while len(self._searched) > _REMEMBERED:
                del self._searched[next(iter(self._searched))]
            return None
        for group_id in seen.subjects.groups if seen.key in _COORDINATED else ():
            times, told_at = self._told(memory, group_id)
            if times >= _MOST_REPEATS and seen.now - told_at > _SECONDS_TO_READ:
                return f"group {group_id}: {seen.key.api_name} after {times} times NOT_COORDINATOR without a lookup"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if seen.key in _COORDINATED and answer is not None:
            code = getattr(answer, "error_code", 0)
            for group_id in seen.subjects.groups:
                if code == ErrorCode.NOT_COORDINATOR:
                    times, told_at = self._told(memory, group_id)
                    # Answers to requests that were sent together count as one.
                    if not times or seen.now - told_at > _SECONDS_TO_READ:
                        memory[group_id] = (times + 1, seen.now)
                elif code == ErrorCode.NONE:
                    memory.pop(group_id, None)
        return None

    def _told(self, memory: Memory, group_id: str) -> tuple[int, float]:
        """How often a client was told since the last lookup, and when last."""
        times, told_at = memory.get(group_id, (0, 0.0))
        return (0, 0.0) if self._searched.get(group_id, -1.0) > told_at else (times, told_at)


class MemberIdIgnored(Rule):
    """MEMBER_ID_REQUIRED comes with an id, and the next JoinGroup carries it.

    A client with another request in flight under its former id may learn from its answer (UNKNOWN_MEMBER_ID) that it
    is not a member, and start over. It does not do so twice in a row.
    """

    name = "member-id-ignored"
    reference = "KIP-394"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        message = seen.message
        if not isinstance(message, JoinGroupRequest) or message.group_id not in memory:
            return None
        given, times = memory[message.group_id]
        if message.member_id:
            del memory[message.group_id]
            return None
        memory[message.group_id] = given, times + 1
        if times < 1:
            return None
        return f"group {message.group_id}: JoinGroup without the member id {given} that it was given"

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        required = isinstance(answer, JoinGroupResponse) and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        if required and not seen.by_fault:
            _, times = memory.get(seen.message.group_id, ("", 0))
            memory[seen.message.group_id] = answer.member_id, times  # type: ignore[union-attr]
        return None


class SpokenAfterLeaving(Rule):
    """A client that has left a group is no longer a member of it."""

    name = "spoken-after-leaving"
    reference = "Kafka protocol guide, Group Membership API: LeaveGroup"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        beat = _beat(seen.message)
        if beat is not None and beat[2] <= 0:  # it joins again, or leaves
            memory.pop(beat[:2], None)
            return None
        membership = beat or _membership(seen.message)
        if membership is None:
            return None
        left_at = memory.get(membership[:2])
        if left_at is None or seen.now - left_at <= _SECONDS_TO_READ:
            return None
        return f"group {membership[0]}: {seen.key.api_name} as {membership[1]}, which has left"

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        message = seen.message
        if isinstance(message, LeaveGroupRequest) and isinstance(answer, LeaveGroupResponse) and not answer.error_code:
            # A static member (KIP-345) that leaves by its instance id may have been removed by another client.
            members = [each.member_id for each in message.members] or [message.member_id]
            for member_id in members:
                if member_id:
                    memory[message.group_id, member_id] = seen.now
        beat = _beat(message)
        if beat is not None and beat[2] == _LEAVES and answer is not None and not getattr(answer, "error_code", 0):
            memory[beat[:2]] = seen.now
        return None


class CommitByNonMember(Rule):
    """Only members commit offsets of a group that has members."""

    name = "commit-by-non-member"
    reference = "Kafka protocol guide, OffsetCommit: member id and generation of a group that is in use"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        message = seen.message
        if not isinstance(message, OffsetCommitRequest) or message.member_id:
            return None
        group = _group(seen, message.group_id)
        if group is None or not group.members or group.state not in (GroupState.STABLE,):
            return None
        return f"group {message.group_id}: a commit without a member id, and the group has {len(group.members)} members"


GROUP_RULES: Final[tuple[type[Rule], ...]] = (
    GenerationGoneBack,
    MemberEpochGoneBack,
    GenerationNeverGiven,
    WrongCoordinator,
    MemberIdIgnored,
    SpokenAfterLeaving,
    CommitByNonMember,
)

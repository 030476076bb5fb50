"""Rules for members of groups."""

from __future__ import annotations

from typing import Any, Final

from broker.group.states import GroupState
from broker.testing.strict.rule import Memory, Rule, Seen
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from protocol.schema import Message

_COORDINATED: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
    }
)
# How long a client may take to read an answer before its next request counts as sent in the knowledge of it, and how
# often it may have been told.
_SECONDS_TO_READ: Final = 0.1
_TIMES_TOLD: Final = 3
# Of how many groups it is known when their coordinator was looked for.
_REMEMBERED: Final = 10_000


def _membership(message: Any) -> tuple[str, str, int] | None:
    """The group, member and generation that a member's request is sent in."""
    if isinstance(message, HeartbeatRequest | SyncGroupRequest):
        return message.group_id, message.member_id, message.generation_id
    if isinstance(message, OffsetCommitRequest) and message.member_id:
        return message.group_id, message.member_id, message.generation_id_or_member_epoch
    if isinstance(message, TxnOffsetCommitRequest) and message.member_id:
        return message.group_id, message.member_id, message.generation_id
    return None


def _group(seen: Seen, group_id: str) -> Any:
    groups = seen.broker.groups
    return None if groups.objection(group_id) else groups.shard(group_id).groups.get(group_id)


class GenerationGoneBack(Rule):
    """After a rebalance a member speaks in the new generation, and not in an older one again."""

    name = "generation-gone-back"
    reference = "Kafka protocol guide, Group Membership API: generation ids"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        membership = _membership(seen.message)
        if membership is None or membership[2] < 0:
            return None
        group_id, member_id, generation = membership
        latest = memory.get((group_id, member_id), -1)
        if generation < latest:
            return f"group {group_id}: generation {generation} after the member had used {latest}"
        memory[group_id, member_id] = generation
        return None


class GenerationNeverGiven(Rule):
    """Generations come from the coordinator's answers to JoinGroup.

    A group may have been forgotten since, and have begun anew, by a reset or a crash. So only a member that was given
    its generation over this very connection is held to it.
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
    """Whoever is told NOT_COORDINATOR looks for the coordinator before it asks again.

    Clients ask any broker for it, over another connection. So a search for the group by anybody counts as one.
    """

    name = "wrong-coordinator"
    reference = "Kafka protocol guide, Group Membership API: FindCoordinator after NOT_COORDINATOR"

    def __init__(self) -> None:
        self._searched: dict[str, float] = {}  # when a group's coordinator was last looked for, the latest at the end

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
            if times >= _TIMES_TOLD and seen.now - told_at > _SECONDS_TO_READ:
                return f"group {group_id}: {seen.key.api_name} after {times} times NOT_COORDINATOR, without a search"
        return None

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        if seen.key in _COORDINATED and answer is not None:
            code = getattr(answer, "error_code", 0)
            for group_id in seen.subjects.groups:
                if code == ErrorCode.NOT_COORDINATOR:
                    times, told_at = self._told(memory, group_id)
                    # Answers to what was sent together count as one.
                    if not times or seen.now - told_at > _SECONDS_TO_READ:
                        memory[group_id] = (times + 1, seen.now)
                elif code == ErrorCode.NONE:
                    memory.pop(group_id, None)
        return None

    def _told(self, memory: Memory, group_id: str) -> tuple[int, float]:
        """How often a client was told, since anybody last looked, and when last."""
        times, told_at = memory.get(group_id, (0, 0.0))
        return (0, 0.0) if self._searched.get(group_id, -1.0) > told_at else (times, told_at)


class MemberIdIgnored(Rule):
    """MEMBER_ID_REQUIRED comes with an id, and the next JoinGroup carries it.

    A client that has another request under way, in the name that it had before, may learn from its answer
    (UNKNOWN_MEMBER_ID) that it is nobody, and begin anew. It does not do so twice in a row.
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
    """Whoever has left a group is no member of it any more."""

    name = "spoken-after-leaving"
    reference = "Kafka protocol guide, Group Membership API: LeaveGroup"

    def request(self, seen: Seen, memory: Memory) -> str | None:
        membership = _membership(seen.message)
        if membership is None:
            return None
        left_at = memory.get(membership[:2])
        if left_at is None or seen.now - left_at <= _SECONDS_TO_READ:
            return None
        return f"group {membership[0]}: {seen.key.api_name} as {membership[1]}, which has left"

    def answer(self, seen: Seen, memory: Memory, answer: Message | None) -> str | None:
        message = seen.message
        if isinstance(message, LeaveGroupRequest) and isinstance(answer, LeaveGroupResponse) and not answer.error_code:
            # A static member (KIP-345) that leaves by its instance id may be another client's business.
            members = [each.member_id for each in message.members] or [message.member_id]
            for member_id in members:
                if member_id:
                    memory[message.group_id, member_id] = seen.now
        return None


class CommitByNonMember(Rule):
    """Offsets of a group with members are committed by its members."""

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
    GenerationNeverGiven,
    WrongCoordinator,
    MemberIdIgnored,
    SpokenAfterLeaving,
    CommitByNonMember,
)

"""A classic group: its members, its generation, and the questions that decisions about it ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.classic.member import Member, Protocols
from barnabas.broker.group.classic.objections import objection_to_commit, objection_to_transactional_commit
from barnabas.broker.group.classic.records import group_tombstone
from barnabas.broker.group.classic.states import GroupState, may_follow
from barnabas.broker.group.classic.story import Story
from barnabas.broker.group.classic.subscription import subscribed_topics
from barnabas.broker.group.kind import Committer, GroupKind, Since
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponseMember
from barnabas.protocol.topic_partition import TopicPartition


class Group:
    """What a GroupMetadataValue holds is durable: generation, protocol, leader, members and their assignments.

    The rest (who is pending, who waits for an answer) is forgotten when the broker stops, and clients ask again.
    """

    kind = GroupKind.CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # group.instance.id -> member id
        self.pending_members: set[str] = set()  # were given an id, and have to join with it
        self.pending_sync_members: set[str] = set()  # their join was answered, and they have to sync
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.EMPTY
        self.state_since_ms = now_ms
        self.story = Story()
        self.new_member_added = False  # during the initial delay, which is then extended
        self._protocol_counts: Counter[str] = Counter()  # how many members have each protocol

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        if not may_follow(state, self.state):
            raise ValueError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    # --- members ---

    def add(self, member: Member) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._count(member, -1)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        self.pending_sync_members.discard(member_id)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def replace_static(self, instance_id: str, new_member_id: str) -> Member:
        """The same member under a new id, in its old place. The caller answers what the old id waits for."""
        old_member_id = self.static_members[instance_id]
        member = self.members[old_member_id]
        members = [(new_member_id if key == old_member_id else key, value) for key, value in self.members.items()]
        self.members = dict(members)
        member.member_id = new_member_id
        self.static_members[instance_id] = new_member_id
        self.pending_sync_members.discard(old_member_id)
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return member

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_have_joined(self) -> bool:
        return not self.pending_members and all(member.answer_join for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, or choose another member that has. False if none has."""
        if self.leader_id is not None and self.members[self.leader_id].answer_join:
            return True
        joined = next((member for member in self.members.values() if member.answer_join), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    # --- protocols ---

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols fits the present members."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        common = self._common_protocols()
        return any(name in common for name, _ in protocols)

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member, -1)
        member.protocols = list(protocols)
        self._count(member, 1)

    def _count(self, member: Member, step: int) -> None:
        for name, _ in member.protocols:
            self._protocol_counts[name] += step

    def _common_protocols(self) -> frozenset[str]:
        """The protocols that every member has."""
        return frozenset(name for name, count in self._protocol_counts.items() if count == len(self.members))

    def vote(self) -> str:
        """The protocol that most members prefer, among those that all have."""
        candidates = self._common_protocols()
        votes = Counter(member.votes_for(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # --- generations ---

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol = self.vote()
            self.transition_to(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.transition_to(GroupState.EMPTY, now_ms)

    def member_list(self) -> list[JoinGroupResponseMember]:
        """What the leader needs to know to assign partitions."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    # --- what all kinds of groups are asked ---

    @property
    def state_name(self) -> str:
        return self.state.value

    def identities(self) -> Sequence[tuple[str, str | None]]:
        return [(member.member_id, member.group_instance_id) for member in self.members.values()]

    @property
    def is_empty(self) -> bool:
        return self.is_in(GroupState.EMPTY)

    @property
    def is_forgettable(self) -> bool:
        return self.is_empty and not self.pending_members

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return [group_tombstone(self.group_id)]

    def heard_from(self, member_id: str, now_ms: int, elapsed_ms: int) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.heard_at_ms, member.heard_elapsed_ms = now_ms, elapsed_ms

    def objection_to_commit(
        self, by: Committer, offsets: Sequence[tuple[TopicPartition, CommittedOffset]]
    ) -> ErrorCode:
        objection = objection_to_transactional_commit if by.in_transaction else objection_to_commit
        return objection(self, by.member_id, by.instance_id, by.epoch)

    def objection_to_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def objection_to_deleting_offsets(self) -> ErrorCode:
        is_known = self.is_empty or self.protocol_type == "consumer"
        return ErrorCode.NONE if is_known else ErrorCode.NON_EMPTY_GROUP

    def read_topics(self) -> Collection[str] | None:
        return () if self.is_empty else subscribed_topics(self)

    def offsets_kept_since(self) -> Since:
        """Offsets of a group with members stay, except for topics that it no longer reads. Others expire some time
        after the group became empty or, if the group never had members, after they were committed."""
        if self.protocol_type is None:
            return lambda _, committed: committed.commit_timestamp
        if self.is_empty:
            return lambda _, committed: max(committed.commit_timestamp, self.state_since_ms)
        topics = subscribed_topics(self) if self.is_in(GroupState.STABLE) else None
        if topics is None:
            return lambda _, committed: None
        return lambda topic, committed: None if topic in topics else committed.commit_timestamp

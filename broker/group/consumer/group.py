"""A group of the consumer protocol: its members, its epochs, its target assignment. Only replayed records change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.consumer.member import ConsumerMember
from barnabas.broker.group.consumer.reconciliation import Target
from barnabas.broker.group.consumer.records import group_tombstones
from barnabas.broker.group.kind import Committer, GroupKind, Since
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

NO_TARGET: Final[Target] = {}
CONSUMER: Final = "consumer"
_FIRST_COMMIT_VERSION: Final = 9  # of OffsetCommit, that can name a member epoch


class ConsumerGroupState(Enum):
    """What a group's epochs say of it, with the name that answers carry. It is derived, never set."""

    EMPTY = "Empty"
    """No members."""

    ASSIGNING = "Assigning"
    """The target assignment is older than the group: it will be computed with a member's next heartbeat."""

    RECONCILING = "Reconciling"
    """Some members have not reached the target yet."""

    STABLE = "Stable"
    """Every member has what the target gives it."""


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matched, when it was looked up, and the version of the topics then."""

    topics: frozenset[str]
    version: int
    timestamp: int


class ConsumerGroup:
    kind = GroupKind.CONSUMER

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # group.instance.id -> member id
        self.target: dict[str, Target] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        self.topics_changed = False  # soft state: topics that it reads may be others than its hash says
        self.rejoining: set[str] = set()  # members of the classic protocol that were told to join again
        self._owners: dict[tuple[bytes, int], str] = {}
        self._topic_counts: Counter[str] = Counter()  # how many members name each topic
        self._regex_counts: Counter[str] = Counter()
        self._assignor_counts: Counter[str] = Counter()

    # --- changes ---

    def put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._uncount(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._topic_counts.update(member.topics)
        self._regex_counts.update([member.regex] if member.regex else ())
        self._assignor_counts.update([member.assignor] if member.assignor else ())
        for topic_id, index in _partitions(member):
            self._owners[topic_id, index] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._uncount(member)
        self.rejoining.discard(member_id)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _uncount(self, member: ConsumerMember) -> None:
        for counts, names in (
            (self._topic_counts, member.topics),
            (self._regex_counts, [member.regex] if member.regex else []),
            (self._assignor_counts, [member.assignor] if member.assignor else []),
        ):
            for name in names:
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]
        for partition in _partitions(member):
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]

    # --- questions ---

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_owned(self, topic_id: bytes, index: int) -> bool:
        """Whether a member has this partition, or has not yet let go of it."""
        return (topic_id, index) in self._owners

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Target:
        """A static member has the target of its instance, under whatever id: none if that is new, as in Kafka."""
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
        return NO_TARGET if member_id is None else self.target.get(member_id, NO_TARGET)

    def members_with(self, regex: str) -> int:
        return self._regex_counts[regex]

    @property
    def subscribed_regexes(self) -> Collection[str]:
        return self._regex_counts.keys()

    @property
    def resolved_at_ms(self) -> int:
        """When patterns were last looked up."""
        return max((regex.timestamp for regex in self.regexes.values()), default=0)

    @property
    def resolved_version(self) -> int:
        return max((regex.version for regex in self.regexes.values()), default=0)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that a member reads. A pattern that was not looked up yet matches nothing."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def topics_of_all(self, members: Iterable[ConsumerMember]) -> set[str]:
        """Members mostly read the same, so sets of names are compared before names."""
        read = set(map(self.topics_of, members)) if self.regexes else {member.topics for member in members}
        return set[str]().union(*read)

    def members_after(self, updated: ConsumerMember, replaced: str | None) -> Mapping[str, ConsumerMember]:
        """Its members with a change that is not replayed yet; `replaced` is the id under which one was known before."""
        if updated is self.members.get(updated.member_id):
            return self.members
        members = {**self.members}
        if replaced is not None:
            del members[replaced]
        members[updated.member_id] = updated
        return members

    def topics_after(self, old: ConsumerMember, new: ConsumerMember) -> set[str]:
        """The names of the topics that members read once one has changed, if no pattern was looked up."""
        gone = {name for name in old.topics - new.topics if self._topic_counts[name] == 1}
        return (self._topic_counts.keys() - gone) | new.topics

    def subscribed_topics(self) -> set[str]:
        return {*self._topic_counts, *(topic for regex in self.regexes.values() for topic in regex.topics)}

    def preferred_assignor(self, members: Iterable[ConsumerMember], default: str) -> str:
        """The one that most of these members want, among those who want one.

        Where as many want another, Kafka takes the one that nobody has wanted before, or else the first in its table.
        """
        counts = Counter([member.assignor for member in members if member.assignor])
        known = timeline_order(list(self._assignor_counts))
        order = [*(name for name in counts if name not in known), *known]
        return max(order, key=counts.__getitem__) if counts else default

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member of the classic protocol may join: it shares an assignor with all others of that protocol."""
        if protocol_type != CONSUMER or not names:
            return False
        others = [{name for name, _ in each.classic.protocols} for each in self.members.values() if each.classic]
        return not others or bool(set(names).intersection(*others))

    # --- what all kinds of groups are asked ---

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER

    @property
    def generation(self) -> int:
        return self.epoch

    def identities(self) -> Sequence[tuple[str, str | None]]:
        return [(member.member_id, member.instance_id) for member in self.members.values()]

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_forgettable(self) -> bool:
        return self.is_empty

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.regexes)

    def heard_from(self, member_id: str, now_ms: int, elapsed_ms: int) -> None:
        """A commit does not keep a member of this protocol alive."""

    def objection_to_commit(
        self, by: Committer, offsets: Sequence[tuple[TopicPartition, CommittedOffset]]
    ) -> ErrorCode:
        """Why offsets may not be committed.

        Without a member it is an administrator, or a consumer that assigns its own partitions: it may commit as long as
        the group is empty. A producer that does not name a member may commit, since older ones cannot. A member whose
        epoch has moved on may still commit for partitions that it has had since.
        """
        if by.epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if by.in_transaction and by.epoch == -1 and not by.member_id and by.instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(by.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not by.in_transaction and member.classic is None and by.version < _FIRST_COMMIT_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        if by.epoch == member.epoch:
            return ErrorCode.NONE
        is_classic = by.in_transaction or member.classic is not None
        stale = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
        if by.epoch > member.epoch:
            return stale
        for partition, committed in offsets:
            had_since = member.assigned.get(committed.topic_id, {}).get(partition.partition)
            if had_since is None:
                had_since = member.revoking.get(committed.topic_id, {}).get(partition.partition)
            if had_since is None or by.epoch < had_since:
                return stale
        return ErrorCode.NONE

    def objection_to_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Why offsets may not be read. Whoever does not name a member may read them."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.epoch == epoch:
            return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION

    def objection_to_deleting_offsets(self) -> ErrorCode:
        return ErrorCode.NONE

    def read_topics(self) -> Collection[str]:
        return self.subscribed_topics()

    def offsets_kept_since(self) -> Since:
        """Offsets of topics that it reads stay; others expire some time after they were committed."""
        topics = self.subscribed_topics()
        return lambda topic, committed: None if topic in topics else committed.commit_timestamp


def _partitions(member: ConsumerMember) -> Iterable[tuple[bytes, int]]:
    for assigned in (member.assigned, member.revoking):
        for topic_id, indexes in assigned.items():
            for index in indexes:
                yield topic_id, index

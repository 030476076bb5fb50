"""A share group: its members, its epochs, its target assignment. Only replayed records change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.kind import Committer, GroupKind, Since
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.group.share.member import Assigned, ShareMember
from barnabas.broker.group.share.partitions import NONE
from barnabas.broker.group.share.records import group_tombstones
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

SHARE: Final = "share"
NO_TARGET: Final[Assigned] = {}


class ShareGroupState(Enum):
    """Values are the names that answers carry. It is derived, never set."""

    EMPTY = "Empty"
    """No members."""

    STABLE = "Stable"
    """There are members. Partitions are shared, so nobody waits for others to let go of them."""


class ShareGroup:
    kind = GroupKind.SHARE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Assigned] = {}
        self.state_partitions = NONE
        # Soft state: since when it waits for the states that it has asked for, and whether topics that it reads may be
        # others than its hash says.
        self.asked_at_ms = 0
        self.topics_changed = False
        self._topic_counts: Counter[str] = Counter()  # how many members name each topic

    # --- changes ---

    def put(self, member: ShareMember) -> None:
        self._uncount(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self._topic_counts.update(member.topics)

    def remove(self, member_id: str) -> None:
        self._uncount(self.members.pop(member_id, None))

    def _uncount(self, member: ShareMember | None) -> None:
        for name in () if member is None else member.topics:
            self._topic_counts[name] -= 1
            if not self._topic_counts[name]:
                del self._topic_counts[name]

    # --- questions ---

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def target_of(self, member_id: str) -> Assigned:
        return self.target.get(member_id, NO_TARGET)

    def subscribed_topics(self) -> Collection[str]:
        return self._topic_counts.keys()

    @property
    def has_unassigned(self) -> bool:
        """Whether partitions that members read have got a state, and nobody has been given them yet."""
        if not self.members:
            return False
        given: dict[bytes, set[int]] = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                given.setdefault(topic_id, set()).update(partitions)
        return any(
            named.topic_name in self._topic_counts and frozenset(given.get(topic_id, ())) != named.partitions
            for topic_id, named in self.state_partitions.initialized.items()
        )

    # --- what all kinds of groups are asked ---

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return SHARE

    @property
    def generation(self) -> int:
        return self.epoch

    def identities(self) -> Sequence[tuple[str, str | None]]:
        return [(member_id, None) for member_id in self.members]

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_forgettable(self) -> bool:
        """It stays until it is deleted: it has no offsets that could expire."""
        return False

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def heard_from(self, member_id: str, now_ms: int, elapsed_ms: int) -> None:
        """Nobody commits to a share group."""

    def objection_to_commit(
        self, by: Committer, offsets: Sequence[tuple[TopicPartition, CommittedOffset]]
    ) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def objection_to_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def objection_to_deleting_offsets(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def read_topics(self) -> Collection[str]:
        return self.subscribed_topics()

    def offsets_kept_since(self) -> Since:
        return lambda _, committed: None


def subscribed(members: Mapping[str, ShareMember]) -> set[str]:
    return {name for member in members.values() for name in member.topics}

"""What every kind of group is asked, whatever its protocol: about its offsets, its expiry, and its place in lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.topic_partition import TopicPartition


class GroupKind(Enum):
    """A kind of group. Values are the names that answers carry."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """Who commits offsets: the member that the request names, and the version of the request."""

    member_id: str
    instance_id: str | None
    epoch: int  # a generation, or the epoch of a member
    version: int = -1
    in_transaction: bool = False


# Since when an offset of a topic waits to expire; None if it does not.
Since = Callable[[str, CommittedOffset], int | None]


class AnyGroup(Protocol):
    group_id: str

    @property
    def kind(self) -> GroupKind: ...

    @property
    def state_name(self) -> str:
        """The state that answers show."""

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def generation(self) -> int:
        """The number that grows with each rebalance."""

    def identities(self) -> Sequence[tuple[str, str | None]]:
        """Its members: their ids, and their instance ids if they are static."""

    @property
    def is_empty(self) -> bool:
        """No members, so that it may be deleted."""

    @property
    def is_forgettable(self) -> bool:
        """Nobody is in it, or about to be: it goes with its last offset."""

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        """What deletes all its records but the offsets."""

    def heard_from(self, member_id: str, now_ms: int, elapsed_ms: int) -> None:
        """A member has committed."""

    def objection_to_commit(
        self, by: Committer, offsets: Sequence[tuple[TopicPartition, CommittedOffset]]
    ) -> ErrorCode: ...

    def objection_to_fetch(self, member_id: str | None, epoch: int) -> ErrorCode: ...

    def objection_to_deleting_offsets(self) -> ErrorCode: ...

    def read_topics(self) -> Collection[str] | None:
        """The topics that its members read; None if that cannot be told."""

    def offsets_kept_since(self) -> Since: ...


_MAKES_ROOM_FOR: Final[dict[GroupKind, Collection[GroupKind]]] = {
    GroupKind.CLASSIC: (GroupKind.CONSUMER, GroupKind.STREAMS),
    GroupKind.CONSUMER: (GroupKind.CLASSIC,),
    GroupKind.SHARE: (),
    GroupKind.STREAMS: (GroupKind.CLASSIC,),
}


def makes_room(group: AnyGroup, kind: GroupKind) -> bool:
    """Whether a group is empty, and a member of this other kind may begin a new one in its place."""
    return group.is_empty and kind in _MAKES_ROOM_FOR[group.kind]


def listing(group: AnyGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.kind.value,
    )

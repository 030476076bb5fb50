"""A member of a consumer group, as its records have it: a value, which is replaced and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

# By topic id: the partitions, and for each the epoch in which the member got it.
Assigned = Mapping[bytes, Mapping[int, int]]

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
AWAY_EPOCH: Final = -2
"""A static member has left for a while. Its partitions stay its own until its session ends."""


class MemberState(IntEnum):
    """How far a member has come on the way to its target, with its number in the record."""

    STABLE = 0
    """It has all that the target of its epoch gives it."""

    UNREVOKED_PARTITIONS = 1
    """It has to let go of partitions, and has not said yet that it has. It stays in its epoch until then."""

    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have not let go of."""

    UNKNOWN = 127
    """From a newer coordinator. The member has to begin again."""


class ClassicProtocols(NamedTuple):
    """What JoinGroup said of a member of the classic protocol, in a group that is on its way between the two."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # assignors that it knows, each with its subscription

    @property
    def name(self) -> str:
        """The one that it is told: here, the broker assigns, and the name does not matter."""
        return self.protocols[0][0]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""  # without one, empty
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicProtocols | None = None  # of a member that speaks the classic protocol
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved_to(self, epoch: int, state: MemberState, assigned: Assigned, revoking: Assigned) -> ConsumerMember:
        """The same member on its way to another assignment, in this epoch or the next."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def owns(self, owned: Mapping[bytes, frozenset[int]]) -> bool:
        """Whether it may have all of these partitions."""
        return all(index in self.assigned.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes)

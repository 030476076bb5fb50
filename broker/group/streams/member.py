"""A member of a streams group, as its records have it: a value, which is replaced and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.broker.group.streams.tasks import NOTHING_ASSIGNED, AssignedTasks

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
AWAY_EPOCH: Final = -2
"""As in consumer groups, for static members, which Apache Kafka 4.3 does not have in streams groups yet."""


class MemberState(IntEnum):
    """How far a member has come on the way to its target, with its number in the record."""

    STABLE = 1
    """It has all that the target of its epoch gives it."""

    UNREVOKED_TASKS = 2
    """It has to let go of tasks, and has not said yet that it has. It stays in its epoch until then."""

    UNRELEASED_TASKS = 3
    """It waits for tasks that other members have not let go of."""

    UNKNOWN = 127
    """From a newer coordinator. The member has to begin again."""


class Endpoint(NamedTuple):
    """Where an instance of the application answers queries for its state."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: AssignedTasks = NOTHING_ASSIGNED
    revoking: AssignedTasks = NOTHING_ASSIGNED

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: AssignedTasks, revoking: AssignedTasks = NOTHING_ASSIGNED
    ) -> StreamsMember:
        """The same member on its way to another assignment, in this epoch or the next."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

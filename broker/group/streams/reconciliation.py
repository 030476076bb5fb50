"""Reconciliation: the steps of a member from the tasks that it has to those that the target gives it.

A member first lets go of what the target takes from it, and says so in a heartbeat. It gets an active task as soon as
nobody has it as such, and no task that its own process has in any other role: the state of a task on a machine belongs
to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.member import MemberState, StreamsMember
from barnabas.broker.group.streams.tasks import AssignedTasks, TaskEpochs, TaskIds, Tasks
from barnabas.protocol.errors import ErrorCode


class Owners(Protocol):
    """In which processes members have a task, or have not let go of it yet."""

    def active_in(self, subtopology: str, partition: int) -> str | None: ...

    def copied_in(self, subtopology: str, partition: int) -> Collection[str]:
        """As a standby or a warm-up task."""


def reconcile(
    member: StreamsMember, target_epoch: int, target: Tasks, owners: Owners, owned: Tasks | None
) -> StreamsMember:
    """The member's next state; the same one if it cannot go on yet. `owned` is what it says it has, if it says so."""
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_TASKS:
            if owned is None or member.revoking.overlaps(owned):
                return member
            return _towards(member, member.epoch + 1, target_epoch, target, owners, owned)
        case MemberState.UNKNOWN:
            if owned is None or not owned.is_empty:
                raise Refused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The member's state is unknown. It must abandon its tasks and rejoin.",
                )
            return _towards(member, target_epoch, target_epoch, target, owners, owned)
        case _:
            return _towards(member, member.epoch, target_epoch, target, owners, owned)


class _Difference(NamedTuple):
    kept: dict[str, frozenset[int]]
    lost: dict[str, frozenset[int]]
    gained: dict[str, frozenset[int]]
    waits: bool  # for a task that somebody has to release


def _difference(had: TaskIds | TaskEpochs, wanted: TaskIds, is_taken: Callable[[str, int], bool]) -> _Difference:
    kept: dict[str, frozenset[int]] = {}
    lost: dict[str, frozenset[int]] = {}
    gained: dict[str, frozenset[int]] = {}
    waits = False
    for id in dict.fromkeys([*wanted, *had]):
        now, then = frozenset(had.get(id, ())), wanted.get(id, frozenset())
        free = frozenset(index for index in then - now if not is_taken(id, index))
        waits = waits or free != then - now
        for tasks, found in ((kept, now & then), (lost, now - then), (gained, free)):
            if found:
                tasks[id] = found
    return _Difference(kept, lost, gained, waits)


def _towards(
    member: StreamsMember, epoch: int, target_epoch: int, target: Tasks, owners: Owners, owned: Tasks | None
) -> StreamsMember:
    """`epoch` is the member's as long as it has something to let go of."""
    process, had = member.process_id, member.assigned

    def is_active_taken(id: str, index: int) -> bool:
        return owners.active_in(id, index) is not None or process in owners.copied_in(id, index)

    def is_copy_taken(id: str, index: int) -> bool:
        return owners.active_in(id, index) == process or process in owners.copied_in(id, index)

    active = _difference(had.active, target.active, is_active_taken)
    standby = _difference(had.standby, target.standby, is_copy_taken)
    warmup = _difference(had.warmup, target.warmup, is_copy_taken)

    revoking = AssignedTasks(_since(had.active, active.lost), standby.lost, warmup.lost)
    kept = AssignedTasks(_since(had.active, active.kept), standby.kept, warmup.kept)
    if not revoking.is_empty and (owned is None or revoking.overlaps(owned)):
        return member.moved_to(epoch, MemberState.UNREVOKED_TASKS, kept, revoking)
    new = {id: dict.fromkeys(sorted(indexes), target_epoch) for id, indexes in active.gained.items()}
    assigned = AssignedTasks(
        {id: {**kept.active.get(id, {}), **new.get(id, {})} for id in dict.fromkeys([*kept.active, *new])},
        _merged(standby.kept, standby.gained),
        _merged(warmup.kept, warmup.gained),
    )
    waits = active.waits or standby.waits or warmup.waits
    return member.moved_to(target_epoch, MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE, assigned)


def _since(had: TaskEpochs, tasks: TaskIds) -> TaskEpochs:
    return {id: {index: had[id][index] for index in sorted(indexes)} for id, indexes in tasks.items()}


def _merged(some: TaskIds, others: TaskIds) -> TaskIds:
    none: frozenset[int] = frozenset()
    return {id: some.get(id, none) | others.get(id, none) for id in dict.fromkeys([*some, *others])}

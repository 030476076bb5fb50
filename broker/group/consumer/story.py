"""What happened in the last rebalances of consumer groups, for people: why each began, who had to let go, who waited.

Soft state, written down as membership decides and read by nobody but those who look. Nothing is noted by a heartbeat
that changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.group.classic.story import Note
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import ConsumerMember, MemberState
from barnabas.broker.group.consumer.reconciliation import Target

_KEPT: Final = 20
_MOST_NOTES: Final = 500

Partitions = Mapping[bytes, Collection[int]]


@dataclass(slots=True)
class Change:
    """From one epoch of a group to the next: it begins, the broker assigns, and each member gets there in its time."""

    began_ms: int
    epoch: int
    reason: str
    before: dict[str, Partitions]  # what each member had
    clients: dict[str, str]  # what members call themselves
    notes: list[Note] = field(default_factory=list)
    assigned_ms: int | None = None
    assignor: str = ""
    after: Mapping[str, Target] = field(default_factory=dict)
    awaited: dict[str, None] = field(default_factory=dict)  # those who are not there yet
    ended_ms: int | None = None

    def note(self, now_ms: int, member_id: str, what: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(Note(now_ms, member_id, what))


class Stories:
    """By group. A group of which nothing is known but its offsets has none."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Change]] = {}

    def of(self, group_id: str) -> Sequence[Change]:
        return self._of.get(group_id, ())

    def forget(self, group_id: str) -> None:
        self._of.pop(group_id, None)

    def begin(self, now_ms: int, group: ConsumerGroup, epoch: int, new: Iterable[ConsumerMember], reason: str) -> None:
        """`new` are members that the group does not have yet."""
        last = self._current(group.group_id)
        if last is not None:
            last.ended_ms = now_ms
        if last is not None and last.assigned_ms is None:
            # A thousand members may join before the next assignment: what the others have is noted only once.
            before, clients = last.before, last.clients
        else:
            before = {each.member_id: each.assigned for each in group.members.values()}
            clients = {each.member_id: each.client_id for each in group.members.values()}
        clients.update((each.member_id, each.client_id) for each in new)
        changes = self._of.setdefault(group.group_id, deque(maxlen=_KEPT))
        changes.append(Change(now_ms, epoch, reason, before, clients))

    def gone(
        self,
        now_ms: int,
        group: ConsumerGroup,
        gone: Sequence[ConsumerMember],
        left: Mapping[str, ConsumerMember],
        reason: str,
    ) -> None:
        ids = ", ".join(member.member_id for member in gone[:3])
        self.begin(now_ms, group, group.epoch + 1, (), f"a member is gone: {ids}, {reason}")
        change = self._of[group.group_id][-1]
        for member in gone:
            change.note(now_ms, member.member_id, reason)
        if not left:
            change.ended_ms = now_ms

    def assigned(
        self,
        now_ms: int,
        group: ConsumerGroup,
        epoch: int,
        members: Mapping[str, ConsumerMember],
        target: Mapping[str, Target],
        assignor: str,
    ) -> None:
        change = self._current(group.group_id)
        if change is None or change.epoch != epoch:  # it began before this broker coordinated the group
            self.begin(now_ms, group, epoch, members.values(), "of something before this broker coordinated the group")
            change = self._of[group.group_id][-1]
        change.assigned_ms, change.assignor, change.after = now_ms, assignor, target
        change.awaited = dict.fromkeys(members)

    def moved(self, now_ms: int, group_id: str, old: ConsumerMember, new: ConsumerMember, target_epoch: int) -> None:
        """A member has come a step further."""
        change = self._current(group_id)
        if change is None:
            return
        if old.state is MemberState.UNREVOKED_PARTITIONS and new.state is not MemberState.UNREVOKED_PARTITIONS:
            change.note(now_ms, new.member_id, "has let go")
        if new.state is MemberState.UNREVOKED_PARTITIONS:
            change.note(now_ms, new.member_id, "is asked to let go")
        elif new.state is MemberState.UNRELEASED_PARTITIONS:
            change.note(now_ms, new.member_id, "waits for what others have")
        elif new.epoch == target_epoch:
            change.note(now_ms, new.member_id, "has its part")
            change.awaited.pop(new.member_id, None)
            if change.assigned_ms is not None and not change.awaited:
                change.ended_ms = now_ms

    def _current(self, group_id: str) -> Change | None:
        changes = self._of.get(group_id)
        return changes[-1] if changes and changes[-1].ended_ms is None else None

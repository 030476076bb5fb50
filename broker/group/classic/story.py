"""What happened in a group's last rebalances, for people: who did what when, and why it began.

Soft state, written down as membership decides and read by nobody but those who look. Only rebalances write here, and
only the last ones are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.group.classic.member import Member

_KEPT: Final = 20
# A group of thousands of members has a long rebalance: its first notes are enough.
_MOST_NOTES: Final = 500


@dataclass(slots=True)
class Note:
    at_ms: int
    member_id: str
    what: str


@dataclass(slots=True)
class Rebalance:
    began_ms: int
    reason: str
    before: Mapping[str, bytes]  # what each member had
    notes: list[Note] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)  # what members call themselves
    generation: int | None = None  # the one that it led to
    joined_ms: int | None = None  # when all had joined that were waited for
    ended_ms: int | None = None
    leader_id: str | None = None
    protocol: str | None = None
    after: Mapping[str, bytes] = field(default_factory=dict)


class Story:
    def __init__(self) -> None:
        self.rebalances: deque[Rebalance] = deque(maxlen=_KEPT)
        self._early: list[Note] = []  # what led to the next one
        self._assigned: Mapping[str, bytes] = {}

    def note(self, now_ms: int, member_id: str, what: str) -> None:
        notes = self._current.notes if self._current is not None else self._early
        if len(notes) < _MOST_NOTES:
            notes.append(Note(now_ms, member_id, what))

    @property
    def _current(self) -> Rebalance | None:
        last = self.rebalances[-1] if self.rebalances else None
        return last if last is not None and last.ended_ms is None else None

    def begin(self, now_ms: int, reason: str) -> None:
        """A rebalance begins; one that was under way has come to nothing."""
        current = self._current
        if current is not None:
            current.ended_ms = now_ms
            if current.notes and current.notes[-1].member_id in reason:  # what it did belongs to what it caused
                self._early = [current.notes.pop()]
        self.rebalances.append(Rebalance(now_ms, reason, self._assigned, self._early))
        self._early = []

    def all_joined(
        self, now_ms: int, generation: int, leader_id: str | None, protocol: str | None, members: Iterable[Member]
    ) -> None:
        current = self._current
        if current is None:
            return
        current.generation, current.joined_ms = generation, now_ms
        current.leader_id, current.protocol = leader_id, protocol
        current.clients = {member.member_id: member.client_id for member in members}
        if not current.clients:  # the group is empty now
            current.ended_ms, self._assigned = now_ms, {}

    def assigned(self, now_ms: int, members: Iterable[Member]) -> None:
        """Every member has its part."""
        self._assigned = {member.member_id: member.assignment for member in members}
        if self._current is not None:
            self._current.after = self._assigned
            self._current.ended_ms = now_ms

"""What happened lately at a broker's partitions, for people: who led them when, and what producers sent again.

Only rare events are noted, where they happen, and only the last ones are kept.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

_ROLES: Final = 1000
_REPEATS: Final = 500


class RoleChange(NamedTuple):
    """A replica leads, follows another broker, or has cut its log to be like its leader's."""

    at_ms: int
    topic: str
    partition: int
    leader_id: int  # -1: nobody
    leader_epoch: int
    isr: tuple[int, ...]  # as the leader knows them; of a follower, none
    end_offset: int
    cut_from: int | None = None  # where the log ended before it was cut


class Repeat(NamedTuple):
    """A batch of a producer with an id that did not simply continue its last one, and was not appended."""

    at_ms: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_sequence: int
    records: int
    kind: str  # "duplicate", "gap", "fenced" or "state"
    words: str


class Moments:
    def __init__(self) -> None:
        self.roles: deque[RoleChange] = deque(maxlen=_ROLES)
        self.repeats: deque[Repeat] = deque(maxlen=_REPEATS)

"""What clients did and saw, for the checker.

A client can only know what it was told. An operation whose answer was lost has no outcome: it may have happened, it may
happen yet, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

# A partition: its topic (with the topic's id, because a name can be used again) and its number.
Key = tuple[str, int]


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"  # it did not happen, and never will
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Send:
    """A batch that a producer sent: one offset follows the other."""

    client: str
    key: Key
    values: tuple[str, ...]
    began: float
    acks: int = -1
    idempotent: bool = False
    transaction: Transaction | None = None
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    offset: int = -1  # of the first value; -1 if that is not known
    epoch: int = -1  # the producer's
    incarnation: int = 0  # how often its sequence numbers have begun anew


@dataclass(slots=True, eq=False)
class Transaction:
    client: str
    number: int
    began: float
    wants: str = "commit"
    outcome: str = "aborted"  # "committed", "aborted" or "unknown"; nobody commits it before that is asked for
    ended: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.client}/{self.number}"


@dataclass(slots=True)
class Poll:
    """What a consumer read of one partition at one time."""

    client: str
    key: Key
    position: int  # where it asked from
    records: tuple[tuple[int, str], ...]  # offsets and values
    next_position: int
    at: float
    assignment: int  # rises with every assignment: another one may begin anywhere
    committed_only: bool
    high_watermark: int = -1
    leader_epoch: int = -1


@dataclass(slots=True)
class Commit:
    """A group's offset for a partition."""

    group: str
    key: Key
    offset: int
    client: str
    began: float
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    transaction: Transaction | None = None


@dataclass(slots=True)
class CommitSeen:
    """A group's offset as somebody was told it; -1 is none."""

    group: str
    key: Key
    offset: int
    client: str
    began: float
    ended: float


@dataclass(slots=True)
class Ownership:
    """A member of a consumer group had a partition to itself, until it let go of it or heard that it was fenced."""

    client: str
    group: str
    key: Key
    began: float
    ended: float = float("inf")
    fenced: bool = False


@dataclass(slots=True)
class Truncated:
    """A consumer was told that what it had read is gone."""

    client: str
    key: Key
    position: int
    end_offset: int
    at: float


@dataclass(slots=True)
class SentElsewhere:
    """A consumer was told by a leader to read from another replica."""

    client: str
    key: Key
    leader: int
    replica: int
    began: float
    ended: float


@dataclass(slots=True)
class History:
    sends: list[Send] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    commits_seen: list[CommitSeen] = field(default_factory=list)
    ownerships: list[Ownership] = field(default_factory=list)
    truncations: list[Truncated] = field(default_factory=list)
    sent_elsewhere: list[SentElsewhere] = field(default_factory=list)
    # The in-sync replicas that a leader believed in, from some time on, by the broker and the partition. No client
    # knows this, but it decides whether one was told the truth.
    isrs: dict[tuple[int, Key], list[tuple[float, tuple[int, ...]]]] = field(default_factory=dict)
    # Everything that is in each partition at the end, as a consumer of committed records sees it.
    final: dict[Key, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    # Topics that were deleted, wholly or perhaps: nothing in them is promised.
    deleted: dict[str, None] = field(default_factory=dict)
    # Names of topics whose leaders need not be in sync: nothing in them is promised either.
    unclean: dict[str, None] = field(default_factory=dict)

    def is_promised(self, key: Key) -> bool:
        return key[0] not in self.deleted and key[0].partition("#")[0] not in self.unclean

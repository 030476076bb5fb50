"""How a check ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.cli.conformance.catalogue import Check


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


class Failed(Exception):
    """The broker does otherwise than the rule says."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}, saw {seen}")
        self.expected = expected
        self.seen = seen


class NotApplicable(Exception):
    """Found out on the way: the broker does not have what the check needs."""


@dataclass(frozen=True)
class Step:
    """One thing that was looked at."""

    expected: str
    seen: str


@dataclass(frozen=True)
class Result:
    check: Check
    verdict: Verdict
    expected: str
    """What should have been, where it failed."""
    seen: str
    """What was instead, or why the check does not apply."""
    seconds: float
    steps: list[Step] = field(default_factory=list)
    """All that was looked at, in order; the last one is what failed, if it failed."""

"""How a check ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.conformance.catalogue import Check


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


class Failed(Exception):
    """The broker does not follow the rule."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"expected {expected}, saw {seen}")
        self.expected = expected
        self.seen = seen


class NotApplicable(Exception):
    """Raised during a check: the broker lacks something that the check needs."""


@dataclass(frozen=True)
class Step:
    """One comparison made by a check."""

    expected: str
    seen: str


@dataclass(frozen=True)
class Result:
    check: Check
    verdict: Verdict
    expected: str
    """What was expected, if the check failed."""
    seen: str
    """What happened instead, or why the check does not apply."""
    seconds: float
    steps: list[Step] = field(default_factory=list)
    """All comparisons, in order. If the check failed, the last one is what failed."""

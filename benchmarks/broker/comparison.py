"""The arithmetic of the comparison: percentiles, medians with their spread, ratios round by round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import Any


class Better(Enum):
    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class Line:
    """One line of the table. Its target is a ratio, Barnabas to Apache Kafka, or Barnabas's `own` figure."""

    key: str
    title: str
    unit: str
    better: Better
    target: float | None = None
    own: bool = False

    def met(self, value: float) -> bool | None:
        """Whether the ratio, or Barnabas's own figure, meets the target."""
        if self.target is None:
            return None
        return value >= self.target if self.better is Better.HIGHER else value <= self.target

    def advantage(self, ratio: float) -> float:
        """How many times better than Apache Kafka, whether higher or lower is better."""
        return ratio if self.better is Better.HIGHER else 1 / ratio


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(median(values), min(values), max(values))


@dataclass
class Figures:
    """The measurements per contestant and line, one value per round."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    client_busy: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, contestant: str, figures: Mapping[str, float]) -> None:
        for key, value in figures.items():
            self.values[contestant][key].append(value)

    def add_client_busy(self, contestant: str, shares: Mapping[str, float]) -> None:
        for key, share in shares.items():
            self.client_busy[contestant][key].append(share)

    def of(self, contestant: str, key: str) -> Spread | None:
        values = self.values.get(contestant, {}).get(key)
        return Spread.of(values) if values else None


@dataclass(frozen=True)
class Row:
    """A line with figures for both brokers. Ratios are computed per round, so that slow rounds do not distort them."""

    line: Line
    kafka: Spread
    barnabas: Spread
    ratio: Spread
    limit: float | None  # the bare loop's figure
    client_busy: float | None  # the share of time that the load client was busy, against Barnabas

    @property
    def met(self) -> bool | None:
        return self.line.met(self.barnabas.median if self.line.own else self.ratio.median)

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.line.key,
            "line": self.line.title,
            "unit": self.line.unit,
            "better": self.line.better.value,
            "kafka": vars(self.kafka),
            "barnabas": vars(self.barnabas),
            "ratio": vars(self.ratio),
            "target": self.line.target,
            "target_is_own": self.line.own,
            "met": self.met,
            "bare_loop": self.limit,
            "client_busy": self.client_busy,
        }


def compare(lines: Sequence[Line], figures: Figures, *, ours: str, theirs: str, bare: str) -> list[Row]:
    """A row for each line that has figures for both brokers."""
    rows = []
    for line in lines:
        kafka, barnabas = figures.of(theirs, line.key), figures.of(ours, line.key)
        if kafka is None or barnabas is None:
            continue
        pairs = zip(figures.values[ours][line.key], figures.values[theirs][line.key], strict=True)
        limit = figures.of(bare, line.key)
        busy = figures.client_busy[ours][line.key]
        rows.append(
            Row(
                line,
                kafka,
                barnabas,
                ratio=Spread.of([our / their for our, their in pairs]),
                limit=limit.median if limit else None,
                client_busy=median(busy) if busy else None,
            )
        )
    return rows


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that this percentage of all values does not exceed."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(0, int(rank) - 1)]

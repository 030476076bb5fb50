"""Metrics as plain data: what a scrape and `broker.metrics` are both made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

Labels = dict[str, str]


class Sample(NamedTuple):
    labels: Labels
    value: float


class Family(NamedTuple):
    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: list[Sample]


class Families:
    """Metrics that are being collected, by name. Each name has one meaning, and samples with different labels."""

    def __init__(self) -> None:
        self._found: dict[str, Family] = {}

    def gauge(self, name: str, meaning: str, value: float, **labels: object) -> None:
        self._add(name, "gauge", meaning, value, labels)

    def counter(self, name: str, meaning: str, value: float, **labels: object) -> None:
        """A number that only grows; its name ends with `_total`."""
        self._add(name, "counter", meaning, value, labels)

    def _add(
        self, name: str, kind: Literal["counter", "gauge"], meaning: str, value: float, labels: dict[str, Any]
    ) -> None:
        family = self._found.get(name)
        if family is None:
            family = self._found[name] = Family(name, kind, meaning, [])
        family.samples.append(Sample({label: str(text) for label, text in labels.items()}, value))

    def all(self) -> list[Family]:
        return list(self._found.values())


def as_data(families: Iterable[Family]) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {
            "name": family.name,
            "kind": family.kind,
            "help": family.help,
            "samples": [{"labels": sample.labels, "value": sample.value} for sample in family.samples],
        }
        for family in families
    ]

"""The metrics of a broker under test, as they are at one moment.

assert broker.metrics.value("kafka_consumergroup_lag", consumergroup="castle") == 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__tracebackhide__ = True  # pytest shows the line of the test instead


@dataclass(frozen=True)
class Sample:
    labels: Mapping[str, str]
    value: float


class Metrics(Mapping[str, list[Sample]]):
    """Samples by the name of their metric; docs/metrics.md lists the names."""

    def __init__(self, told: list[dict[str, Any]]) -> None:
        self._samples = {metric["name"]: [Sample(**sample) for sample in metric["samples"]] for metric in told}

    def value(self, name: str, **labels: object) -> float:
        """The sum of the samples that have all these labels; 0 if none has. KeyError if there is no such metric."""
        wanted = {label: str(text) for label, text in labels.items()}.items()
        return sum(sample.value for sample in self[name] if wanted <= sample.labels.items())

    def __getitem__(self, name: str) -> list[Sample]:
        return self._samples[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

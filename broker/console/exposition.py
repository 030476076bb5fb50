"""Metrics in Prometheus' text format, by prometheus_client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from barnabas.broker.metrics.families import Family

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class _Collected(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            is_counter = family.kind == "counter" and family.name.endswith("_total")
            # prometheus_client knows a counter by its name without the end that its samples have.
            name = family.name.removesuffix("_total") if is_counter else family.name
            metric = Metric(name, family.help, "counter" if is_counter else "gauge")
            for labels, value in family.samples:
                metric.add_sample(family.name, labels, value)
            yield metric


async def exposition(families: Sequence[Family]) -> bytes:
    """In a thread: very many partitions make a long text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(families))
    return await asyncio.to_thread(generate_latest, registry)

"""What request observers cost: nothing when there are none, and some time with the journal or strict mode. A console
that nobody looks at counts requests and times some of them.

The same small Produces go in turn to brokers that differ only in this, so that other load on the machine affects all of
them. Besides the rates there is the broker's own CPU time per request, which depends least on other load.
BUILDS=name=folder,... compares brokers from those folders instead: before and after a change.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack
from typing import NamedTuple
from unittest.mock import patch

import psutil

from barnabas.client.requests.lookup import metadata
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from benchmarks.broker.frames import batch, produce, values
from benchmarks.broker.small_requests import many_at_once, one_at_a_time
from tests.support.broker_process import BrokerProcess

TOPIC = "small"
CONNECTIONS, IN_FLIGHT = 16, 5
# Extra arguments for each broker.
CONTESTANTS = {
    "nothing": [],
    "nothing, once more": [],
    "console, nobody looks": ["--console", "127.0.0.1:0"],
    "journal": ["--journal"],
    "strict": ["--strict"],
}


def main(quick: bool = False) -> None:
    with ExitStack() as brokers:
        compare({name: _start(brokers, *how) for name, how in _contestants().items()}, quick)


def compare(brokers: dict[str, BrokerProcess], quick: bool) -> None:
    """Send small Produces to each in turn, and print how they compare with the first."""
    rounds, seconds = (5, 1.0) if quick else (9, 1.5)
    request = produce(TOPIC, batch(values(100, 1)[0]))
    figures: dict[str, list[Figures]] = {name: [] for name in brokers}
    for number in range(rounds + 1):
        for name, broker in brokers.items():
            taken = _measure(broker, request, seconds)
            if number:  # the first round warms up
                figures[name].append(taken)
    print(
        f"small Produces, {CONNECTIONS} connections x {IN_FLIGHT} in flight and one at a time; {rounds} rounds in turn"
    )
    first = _medians(next(iter(figures.values())))
    for name, taken_by_round in figures.items():
        rate, busy, latency, lone = _medians(taken_by_round)
        print(
            f"  {name:22} {rate:8,.0f} /s ({rate / first.rate:.2f}), {busy:5.1f} us of processor each "
            f"({busy / first.busy:.3f}); alone: p50 {latency:6.1f} us ({latency / first.latency:.2f}), "
            f"{lone:5.1f} us of processor ({lone / first.lone:.3f})"
        )


class Figures(NamedTuple):
    rate: float
    busy: float  # CPU time of the broker per request, in microseconds
    latency: float
    lone: float  # the same for one request at a time


def _measure(broker: BrokerProcess, request: bytes, seconds: float) -> Figures:
    process = psutil.Process(broker.process.pid)
    started = sum(process.cpu_times()[:2])
    many = many_at_once(broker.port, request, CONNECTIONS, IN_FLIGHT, seconds)
    between = sum(process.cpu_times()[:2])
    alone = one_at_a_time(broker.port, request, seconds)
    end = sum(process.cpu_times()[:2])
    return Figures(
        many.per_second,
        (between - started) / many.answers * 1e6,
        statistics.median(alone.seconds) * 1e6,
        (end - between) / alone.answers * 1e6,
    )


def _medians(figures: list[Figures]) -> Figures:
    return Figures(*(statistics.median(column) for column in zip(*figures, strict=True)))


def _contestants() -> dict[str, tuple[str | None, list[str]]]:
    builds = os.environ.get("BUILDS")
    if not builds:
        return {name: (None, arguments) for name, arguments in CONTESTANTS.items()}
    return {name: (folder, []) for name, _, folder in (each.partition("=") for each in builds.split(","))}


def _start(brokers: ExitStack, build: str | None, arguments: list[str]) -> BrokerProcess:
    folder = brokers.enter_context(tempfile.TemporaryDirectory(prefix="observers-"))
    process = BrokerProcess(folder, *arguments)
    environment = {"BARNABAS_BUILD": build} if build else {}
    with patch.dict(os.environ, environment):
        brokers.enter_context(process)
    create_topic(process)
    return process


def create_topic(process: BrokerProcess) -> None:
    with Wire("127.0.0.1", process.port) as wire:
        wire.ask(ApiKey.METADATA, metadata([TOPIC], create=True), 9)


if __name__ == "__main__":
    main(quick=True)

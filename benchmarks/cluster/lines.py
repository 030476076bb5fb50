"""What is measured of three brokers: the lines of the tables with their targets, and the work behind them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.broker import end_to_end, librdkafka, pages
from benchmarks.broker.comparison import Better, Line
from benchmarks.broker.lines import GB, MESSAGES_PER_SECOND, SMALL_VALUE, Measured, quantiles
from benchmarks.cluster import catching_up, failover
from benchmarks.cluster.contestants import AroundZooKeeper, Brokers

HIGHER, LOWER = Better.HIGHER, Better.LOWER

_LOADS: Final = [
    Line("produce_1024", "librdkafka produce, 1 KiB, acks=all", "msg/s", HIGHER, 1.5),
    Line("latency_p50", "end to end at 1,000 msg/s, p50", "us", LOWER),
    Line("latency_p99", "end to end at 1,000 msg/s, p99", "us", LOWER, 0.5),
    Line("cpu_produce", "brokers' CPU, librdkafka produce 1 KiB", "s/GB", LOWER, 0.5),
    Line("memory", "memory of all three after the load", "MB", LOWER, 0.12),
]
LINES: Final = [
    *_LOADS,
    Line("leader_dies", "kill -9 of a leader, to the next acknowledged record", "s", LOWER, 0.7),
    Line("controller_dies", "kill -9 of the controller, 1,000 partitions", "s", LOWER, 0.7),
    Line("catch_up", "a follower that was away catches up", "MB/s", HIGHER, 500, own=True),
    Line("cpu_catch_up", "the follower's CPU meanwhile", "s/GB", LOWER),
    Line("ready", "time until all three are ready", "s", LOWER),
]
"""Three processes around ZooKeeper, of either make."""

IN_ONE_LINES: Final = [*_LOADS, Line("ready", "time until all three are ready", "s", LOWER, 0.5, own=True)]
"""Three Barnabas brokers in one process; Apache Kafka is as before."""

# As many as there are brokers, so that each leads one.
PARTITIONS: Final = 3
MANY_PARTITIONS: Final = 1000
# So many connections share the 1,000 messages a second: on one, records would wait for the acknowledgement of others.
PRODUCERS: Final = 16
MEGABYTE: Final = 1e6


@dataclass(frozen=True)
class Scale:
    warm_ups: int  # rounds that are not counted: Apache Kafka compiles what it runs
    rounds: int
    failovers: int  # of a leader; half as many of the controller
    seconds: float
    messages: int
    catch_up_bytes: int
    no_more_rounds_after: float  # seconds since the beginning


FULL: Final = Scale(
    warm_ups=2, rounds=3, failovers=2, seconds=3.0, messages=600_000, catch_up_bytes=2**30, no_more_rounds_after=240
)
QUICK: Final = Scale(
    warm_ups=1, rounds=2, failovers=1, seconds=2.0, messages=150_000, catch_up_bytes=2**28, no_more_rounds_after=90
)

_numbers = itertools.count()


@dataclass(frozen=True)
class Work:
    name: str
    against: Callable[[Brokers, str, Scale], Measured]
    partitions: int = 1


@dataclass(frozen=True)
class Fault:
    """Work that only clusters of several processes can do, because a process dies or stops."""

    name: str
    against: Callable[[AroundZooKeeper, str, Scale], Measured]
    partitions: int
    times: Callable[[Scale], int]
    bare: Callable[[Scale], Measured] | None = None  # what the machine reaches without a broker


def librdkafka_1024(brokers: Brokers, topic: str, scale: Scale) -> Measured:
    with brokers.cpu() as cpu:
        written = librdkafka.produce(brokers.bootstrap, topic, 1024, scale.messages, partitions=PARTITIONS, copies=3)
    _check(brokers, topic, written.messages)
    figures = {"produce_1024": written.per_second, "cpu_produce": cpu[0] / (scale.messages * 1024 / GB)}
    return Measured(figures, {"produce_1024": written.client_busy})


def latency(brokers: Brokers, topic: str, scale: Scale) -> Measured:
    port = brokers.ports[brokers.leader(topic)]
    taken, records = end_to_end.latencies(
        port, topic, SMALL_VALUE, MESSAGES_PER_SECOND, scale.seconds, connections=PRODUCERS
    )
    _check(brokers, topic, records)
    return Measured(quantiles("latency", taken))


def _check(brokers: Brokers, topic: str, expected: int) -> None:
    """Check that everything acknowledged was written: an error would be a fast response too."""
    found = brokers.end_offset(topic)
    if found != expected:
        raise RuntimeError(f"{brokers.name} has {found} records in {topic}, not {expected}")


def leader_dies(brokers: AroundZooKeeper, topic: str, scale: Scale) -> Measured:
    """A leader that is not the controller."""
    controller = brokers.controller()
    leaders = {each.leader_id for each in brokers.partitions(controller, [topic]).values()}
    victim = max(leaders - {controller})
    return Measured({"leader_dies": failover.seconds_without_leader(brokers, victim, topic)})


def controller_dies(brokers: AroundZooKeeper, topic: str, scale: Scale) -> Measured:
    """It leads partitions, too: a third of those that the topic has, if nobody died before."""
    victim = brokers.controller()
    if not any(each.leader_id == victim for each in brokers.partitions(victim, [topic]).values()):
        raise RuntimeError(f"{brokers.name}: the controller leads nothing")
    return Measured({"controller_dies": failover.seconds_without_leader(brokers, victim, topic)})


def catch_up(brokers: AroundZooKeeper, topic: str, scale: Scale) -> Measured:
    done = catching_up.catch_up(brokers, topic, PARTITIONS, scale.catch_up_bytes)
    return Measured({"catch_up": done.bytes_per_second / MEGABYTE, "cpu_catch_up": done.cpu_per_byte * GB})


def new_file(scale: Scale) -> Measured:
    return Measured({"catch_up": pages.bytes_per_second_to_a_new_file(scale.catch_up_bytes) / MEGABYTE})


WORKS: Final = [Work("librdkafka 1 KiB", librdkafka_1024, PARTITIONS), Work("end to end", latency)]
FAULTS: Final = [
    Fault("catch up", catch_up, PARTITIONS, lambda scale: scale.failovers + 1, new_file),
    Fault("leader dies", leader_dies, PARTITIONS, lambda scale: scale.failovers),
    Fault("controller dies", controller_dies, MANY_PARTITIONS, lambda scale: max(1, scale.failovers // 2)),
]


def new_name(work: str) -> str:
    return f"{work.replace(' ', '-')}-{next(_numbers)}"

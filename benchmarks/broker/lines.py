"""What is measured: the lines of the table with their targets, and the work that produces their figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import psutil

from barnabas.protocol.api import ApiKey
from benchmarks.broker import (
    bare_loops,
    end_to_end,
    frames,
    idempotence,
    java_tools,
    librdkafka,
    raw_fetch,
    small_requests,
    transactions,
)
from benchmarks.broker.comparison import Better, Line, percentile
from benchmarks.broker.contestants import Contestant
from benchmarks.broker.transactions import Way

HIGHER, LOWER = Better.HIGHER, Better.LOWER

LINES: Final = [
    Line("produce_100", "librdkafka produce, 100 B, acks=all", "msg/s", HIGHER, 1.5),
    Line("produce_100_lz4", "librdkafka produce, 100 B, acks=all, lz4", "msg/s", HIGHER, 1.5),
    Line("produce_1024", "librdkafka produce, 1 KiB, acks=all", "msg/s", HIGHER, 1.8),
    Line("produce_1024_lz4", "librdkafka produce, 1 KiB, acks=all, lz4", "msg/s", HIGHER, 1.8),
    Line("consume_1024", "librdkafka consume, 1 KiB", "msg/s", HIGHER, 1.0),
    Line("produce_1024_tls", "librdkafka produce, 1 KiB, acks=all, TLS", "msg/s", HIGHER, 1.0),
    Line("consume_1024_tls", "librdkafka consume, 1 KiB, TLS", "msg/s", HIGHER, 1.0),
    Line("java_produce", "Java producer-perf, 1 KiB, acks=all", "msg/s", HIGHER),
    Line("java_consume", "Java consumer-perf, 1 KiB", "msg/s", HIGHER),
    Line("one_p50", "1 connection, 1 small Produce at a time, p50", "us", LOWER, 0.6),
    Line("one_p99", "1 connection, 1 small Produce at a time, p99", "us", LOWER, 0.3),
    Line("connections_16", "16 connections, 5 small Produces in flight", "req/s", HIGHER, 2.5),
    Line("connections_200", "200 connections, 1 small Produce in flight", "req/s", HIGHER, 1.5),
    Line("connections_1000", "1,000 connections, 1 small Produce in flight", "req/s", HIGHER, 1.3),
    Line("fetch_1", "raw Fetch of 8 MiB, 1 connection", "GB/s", HIGHER, 1.3),
    Line("fetch_4", "raw Fetch of 8 MiB, 4 connections", "GB/s", HIGHER, 1.0),
    Line("fetch_16", "raw Fetch of 8 MiB, 16 connections", "GB/s", HIGHER, 1.0),
    Line("fetch_4_long", "raw Fetch of 8 MiB, 4 connections, for longer", "GB/s", HIGHER, 1.0),
    Line("transactions_1", "1 producer, transactions of 100 messages", "txn/s", HIGHER, 1.5),
    Line("transactions_50", "50 producers, transactions of 100 messages", "txn/s", HIGHER, 1.5),
    Line("transactions_1_classic", "1 producer, the same the classic way", "txn/s", HIGHER, 1.5),
    Line("transactions_50_classic", "50 producers, the same the classic way", "txn/s", HIGHER, 1.5),
    Line("idempotent", "16 connections, idempotent small Produces", "req/s", HIGHER),
    Line("idempotent_share", "idempotent small Produces, of what plain ones reach", "", HIGHER, 0.95, own=True),
    Line("latency_p50", "end to end at 1,000 msg/s, p50", "us", LOWER),
    Line("latency_p99", "end to end at 1,000 msg/s, p99", "us", LOWER),
    Line("cpu_produce", "broker's CPU, librdkafka produce 1 KiB", "s/GB", LOWER, 0.3),
    Line("cpu_consume", "broker's CPU, librdkafka consume 1 KiB", "s/GB", LOWER, 0.3),
    Line("cpu_produce_tls", "broker's CPU, librdkafka produce 1 KiB, TLS", "s/GB", LOWER),
    Line("cpu_consume_tls", "broker's CPU, librdkafka consume 1 KiB, TLS", "s/GB", LOWER),
    Line("cpu_fetch_1", "broker's CPU, raw Fetch, 1 connection", "s/GB", LOWER, 0.3),
    Line("memory", "memory after the load", "MB", LOWER, 0.1),
    Line("ready", "time to ready", "s", LOWER, 0.1),
]

GB: Final = 1e9
MICROSECONDS: Final = 1e6
SMALL_VALUE: Final = bytes(100)
MESSAGES_PER_SECOND: Final = 1000

MESSAGES_PER_TRANSACTION: Final = 100
TRANSACTIONS_PARTITIONS: Final = 10

FETCH_BYTES: Final = 8 * 1024 * 1024
FETCH_BATCH_BYTES: Final = 512 * 1024
FETCH_TOPIC: Final = "large"
FETCH_TOPIC_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    rounds: int
    starts: int  # how often each broker is started to measure its start time
    seconds: float  # for each load with a fixed duration
    long_seconds: float  # for one that shows what lasts: caches and clock rates settle within seconds
    messages_100: int
    messages_1024: int
    idempotent_requests: int  # on each connection, in each turn
    no_more_rounds_after: float  # seconds since the beginning


FULL: Final = Scale(
    rounds=5,
    starts=3,
    seconds=2.0,
    long_seconds=8.0,
    messages_100=1_000_000,
    messages_1024=300_000,
    idempotent_requests=1000,
    no_more_rounds_after=420,
)
QUICK: Final = Scale(
    rounds=2,
    starts=1,
    seconds=0.6,
    long_seconds=4.0,
    messages_100=300_000,
    messages_1024=100_000,
    idempotent_requests=500,
    no_more_rounds_after=90,
)


@dataclass(frozen=True)
class Measured:
    figures: Mapping[str, float]
    client_busy: Mapping[str, float] = field(default_factory=dict)  # for the lines where it is known


@dataclass(frozen=True)
class Work:
    """A piece of work, run against each broker in its own topic, and against a bare loop if it has one."""

    name: str
    against: Callable[[Contestant, str, Scale], Measured]
    bare: Callable[[Scale], Measured] | None = None
    needs: frozenset[ApiKey] = frozenset()  # what both brokers must serve for it
    partitions: int = 1  # of the topic


def prepare(broker: Contestant) -> None:
    """Fill the topic that raw Fetch requests read."""
    broker.create_topic(FETCH_TOPIC)
    request = frames.produce(FETCH_TOPIC, frames.batch_of_size(FETCH_BATCH_BYTES))
    batches = FETCH_TOPIC_BYTES // FETCH_BATCH_BYTES
    with small_requests.connect(broker.port) as connection:
        for _ in range(batches):
            small_requests.first_answer(connection, request)
    check_end_offset(broker, FETCH_TOPIC, batches)


def check_end_offset(broker: Contestant, topic: str, expected: int) -> None:
    """Check that everything acknowledged was written: an error would be a fast response too."""
    found = broker.end_offset(topic)
    if found != expected:
        raise RuntimeError(f"{broker.name} has {found} records in {topic}, not {expected}")


def wait_for_end_offset(broker: Contestant, topic: str, expected: int) -> None:
    """The same, but wait: transaction markers may be written after the responses."""
    deadline = time.monotonic() + small_requests.TIMEOUT
    while broker.end_offset(topic) < expected and time.monotonic() < deadline:
        time.sleep(0.01)  # nothing tells a client about a marker, so poll
    check_end_offset(broker, topic, expected)


# --- stock clients ---


def librdkafka_100(broker: Contestant, topic: str, scale: Scale) -> Measured:
    done = librdkafka_produce(broker, topic, 100, scale.messages_100, "none")
    return Measured({"produce_100": done.per_second}, {"produce_100": done.client_busy})


def librdkafka_100_lz4(broker: Contestant, topic: str, scale: Scale) -> Measured:
    done = librdkafka_produce(broker, topic, 100, scale.messages_100, "lz4")
    return Measured({"produce_100_lz4": done.per_second}, {"produce_100_lz4": done.client_busy})


def librdkafka_1024(broker: Contestant, topic: str, scale: Scale) -> Measured:
    """Write, then read what was written."""
    count = scale.messages_1024
    with cpu_of(broker.process) as cpu_produce:
        written = librdkafka_produce(broker, topic, 1024, count, "none")
    with cpu_of(broker.process) as cpu_consume:
        read = librdkafka.consume(broker.bootstrap, topic, count)
    gigabytes = count * 1024 / GB
    figures = {
        "produce_1024": written.per_second,
        "consume_1024": read.per_second,
        "cpu_produce": cpu_produce.seconds / gigabytes,
        "cpu_consume": cpu_consume.seconds / gigabytes,
    }
    return Measured(figures, {"produce_1024": written.client_busy, "consume_1024": read.client_busy})


def librdkafka_1024_tls(broker: Contestant, topic: str, scale: Scale) -> Measured:
    """The same over TLS, with certificates of the same kind, and no certificates of clients."""
    count = scale.messages_1024
    with cpu_of(broker.process) as cpu_produce:
        written = librdkafka.produce(broker.tls_bootstrap, topic, 1024, count, security=broker.tls)
    check_end_offset(broker, topic, written.messages)
    with cpu_of(broker.process) as cpu_consume:
        read = librdkafka.consume(broker.tls_bootstrap, topic, count, security=broker.tls)
    gigabytes = count * 1024 / GB
    figures = {
        "produce_1024_tls": written.per_second,
        "consume_1024_tls": read.per_second,
        "cpu_produce_tls": cpu_produce.seconds / gigabytes,
        "cpu_consume_tls": cpu_consume.seconds / gigabytes,
    }
    return Measured(figures, {"produce_1024_tls": written.client_busy, "consume_1024_tls": read.client_busy})


def librdkafka_1024_lz4(broker: Contestant, topic: str, scale: Scale) -> Measured:
    done = librdkafka_produce(broker, topic, 1024, scale.messages_1024, "lz4")
    return Measured({"produce_1024_lz4": done.per_second}, {"produce_1024_lz4": done.client_busy})


def librdkafka_produce(broker: Contestant, topic: str, size: int, count: int, codec: str) -> librdkafka.Moved:
    done = librdkafka.produce(broker.bootstrap, topic, size, count, codec)
    check_end_offset(broker, topic, done.messages)
    return done


def java_produce(broker: Contestant, topic: str, scale: Scale) -> Measured:
    rate = java_tools.produce(broker.bootstrap, topic, 1024, scale.messages_1024)
    check_end_offset(broker, topic, scale.messages_1024)
    return Measured({"java_produce": rate})


def java_consume(broker: Contestant, topic: str, scale: Scale) -> Measured:
    librdkafka.produce(broker.bootstrap, topic, 1024, scale.messages_1024)
    return Measured({"java_consume": java_tools.consume(broker.bootstrap, topic, scale.messages_1024)})


# --- small requests ---


def one_at_a_time(broker: Contestant, topic: str, scale: Scale) -> Measured:
    taken = small_requests.one_at_a_time(broker.port, small_produce(topic), scale.seconds)
    check_end_offset(broker, topic, taken.answers)
    return Measured(quantiles("one", taken.seconds))


def bare_one_at_a_time(scale: Scale) -> Measured:
    with bare_broker() as bare:
        taken = small_requests.one_at_a_time(bare.port, small_produce("bare"), scale.seconds)
    return Measured(quantiles("one", taken.seconds))


def many_connections(connections: int, in_flight: int) -> Work:
    key = f"connections_{connections}"

    def against(broker: Contestant, topic: str, scale: Scale) -> Measured:
        done = small_requests.many_at_once(broker.port, small_produce(topic), connections, in_flight, scale.seconds)
        check_end_offset(broker, topic, done.answers)
        return Measured({key: done.per_second}, {key: done.client_busy})

    def bare(scale: Scale) -> Measured:
        request = small_produce("bare")
        with bare_broker() as loop:
            done = small_requests.many_at_once(loop.port, request, connections, in_flight, scale.seconds)
        return Measured({key: done.per_second})

    return Work(f"{connections} connections", against, bare)


def small_produce(topic: str) -> bytes:
    return frames.produce(topic, frames.batch(SMALL_VALUE))


def bare_broker() -> AbstractContextManager[bare_loops.BareLoop]:
    return bare_loops.write_loop(len(small_produce("bare")), frames.produce_answer("bare"))


def transactional_producers(producers: int, way: Way) -> Work:
    key = f"transactions_{producers}" + ("" if way is Way.NEWEST else f"_{way.value}")
    size = MESSAGES_PER_TRANSACTION

    def against(broker: Contestant, topic: str, scale: Scale) -> Measured:
        done = transactions.run(broker.port, topic, TRANSACTIONS_PARTITIONS, topic, producers, size, way, scale.seconds)
        wait_for_end_offset(broker, topic, done.transactions * (size + 1))  # each ends with a marker
        return Measured({key: done.per_second}, {key: done.client_busy})

    name = f"transactions of {producers}" + ("" if way is Way.NEWEST else f", {way.value}")
    return Work(name, against, needs=TRANSACTIONS, partitions=TRANSACTIONS_PARTITIONS)


def idempotent(broker: Contestant, topic: str, scale: Scale) -> Measured:
    done = idempotence.compare(broker.port, topic, SMALL_VALUE, scale.idempotent_requests, pairs=8)
    check_end_offset(broker, topic, done.requests)
    return Measured({"idempotent": done.idempotent, "idempotent_share": done.share}, {"idempotent": done.client_busy})


# --- large requests ---


def fetch_connections(connections: int, *, long: bool = False) -> Work:
    key = f"fetch_{connections}{'_long' if long else ''}"
    requests = [
        frames.fetch(FETCH_TOPIC, offset, FETCH_BYTES)
        for offset in range(0, FETCH_TOPIC_BYTES // FETCH_BATCH_BYTES, FETCH_BYTES // FETCH_BATCH_BYTES)
    ]

    def measure(port: int, process: psutil.Process, scale: Scale) -> Measured:
        with cpu_of(process) as cpu:
            seconds = scale.long_seconds if long else scale.seconds
            done = raw_fetch.fetch(port, requests, FETCH_BYTES, connections, seconds)
        figures = {key: done.bytes_per_second / GB, f"cpu_{key}": cpu.seconds / (done.bytes / GB)}
        return Measured(figures, {key: done.client_busy})

    def against(broker: Contestant, topic: str, scale: Scale) -> Measured:
        return measure(broker.port, broker.process, scale)

    def bare(scale: Scale) -> Measured:
        with bare_loops.send_loop(len(requests[0]), FETCH_BYTES, FETCH_TOPIC_BYTES) as loop:
            return measure(loop.port, loop.process, scale)

    return Work(f"raw Fetch on {connections}{' for longer' if long else ''}", against, bare)


def latency(broker: Contestant, topic: str, scale: Scale) -> Measured:
    taken, records = end_to_end.latencies(broker.port, topic, SMALL_VALUE, MESSAGES_PER_SECOND, scale.seconds)
    check_end_offset(broker, topic, records)
    return Measured(quantiles("latency", taken))


def quantiles(key: str, seconds: list[float]) -> dict[str, float]:
    return {f"{key}_p{percent}": percentile(seconds, percent) * MICROSECONDS for percent in (50, 99)}


class _Cpu:
    seconds = 0.0


@contextmanager
def cpu_of(process: psutil.Process) -> Iterator[_Cpu]:
    """Measure the CPU time of a process during the block."""
    cpu = _Cpu()
    before = process.cpu_times()
    yield cpu
    after = process.cpu_times()
    cpu.seconds = after.user + after.system - before.user - before.system


GROUPS: Final = frozenset({ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP})
TRANSACTIONS: Final = frozenset({ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN})

WORKS: Final = [
    Work("librdkafka 100 B", librdkafka_100),
    Work("librdkafka 100 B lz4", librdkafka_100_lz4),
    Work("librdkafka 1 KiB", librdkafka_1024),
    Work("librdkafka 1 KiB lz4", librdkafka_1024_lz4),
    Work("librdkafka 1 KiB TLS", librdkafka_1024_tls),
    Work("Java producer-perf", java_produce),
    Work("Java consumer-perf", java_consume, needs=GROUPS),
    Work("one at a time", one_at_a_time, bare_one_at_a_time),
    many_connections(16, 5),
    many_connections(200, 1),
    many_connections(1000, 1),
    transactional_producers(1, Way.NEWEST),
    transactional_producers(50, Way.NEWEST),
    transactional_producers(1, Way.CLASSIC),
    transactional_producers(50, Way.CLASSIC),
    Work("idempotence", idempotent),
    fetch_connections(1),
    fetch_connections(4),
    fetch_connections(16),
    fetch_connections(4, long=True),
    Work("end to end", latency),
]

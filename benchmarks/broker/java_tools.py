"""Load by the Java client, through Kafka's own performance tools."""

from __future__ import annotations

import re
from itertools import pairwise

from tests.support.apache_kafka import run_tool

JVM_OPTIONS = ("-Xmx512m",)
TIMEOUT = 120.0


def produce(bootstrap: str, topic: str, size: int, count: int) -> float:
    """Messages per second as kafka-producer-perf-test reports them at the end, without the warm-up."""
    printed = run_tool(
        "kafka-producer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)),
        *("--record-size", str(size), "--throughput", "-1", "--warmup-records", str(count // 3)),
        *("--command-property", "acks=all"),
        timeout=TIMEOUT,
        jvm_options=JVM_OPTIONS,
    ).stdout
    return produced_per_second(printed)


def produced_per_second(printed: str) -> float:
    """The rate in the last line, which is about the steady state."""
    found = re.search(r"^\d+ steady state records sent, ([\d.]+) records/sec", printed, re.MULTILINE)
    if found is None:
        raise ValueError(f"kafka-producer-perf-test printed no summary:\n{printed}")
    return float(found[1])


def consume(bootstrap: str, topic: str, count: int) -> float:
    """Messages per second over the time that kafka-consumer-perf-test spent fetching, without joining its group."""
    printed = run_tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count), "--timeout", "30000"),
        timeout=TIMEOUT,
        jvm_options=JVM_OPTIONS,
    ).stdout
    return consumed_per_second(printed)


def consumed_per_second(printed: str) -> float:
    """The last column, fetch.nMsg.sec, of the row under the header."""
    lines = [line.split(", ") for line in printed.splitlines()]
    for header, row in pairwise(lines):
        if header[-1].strip() == "fetch.nMsg.sec":
            return float(row[-1])
    raise ValueError(f"kafka-consumer-perf-test printed no figures:\n{printed}")

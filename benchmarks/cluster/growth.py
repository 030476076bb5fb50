"""How a cluster grows: 1, 3 and 5 brokers; 10, 1,000 and 5,000 partitions, with as many replicas as brokers, up to 3.

For each: the time to create the partitions as one topic and to be ready again after a restart in good order, the memory
of all brokers, and the CPU that they use while nobody uses them, in per cent of one core. Ready means that every broker
says of every partition that it has a leader and all its replicas in sync.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from benchmarks.broker import machine
from benchmarks.broker.report import aligned, number
from benchmarks.broker.run import RESULTS, allow_open_files, say
from benchmarks.cluster.contestants import Barnabas, Brokers, InOneProcess, Kafka
from tests.support.zookeeper import KAFKA_VERSION, unavailable

PARTITIONS: Final = (10, 1000, 5000)
QUICK_PARTITIONS: Final = (10, 100, 500)
IDLE_SECONDS: Final = 5.0
# What was created or restarted has something to finish.
_SETTLING_SECONDS: Final = 3.0

HEADER: Final = ("", "brokers", "partitions", "create", "ready again", "memory", "idle CPU")


class Grown(NamedTuple):
    name: str
    brokers: int
    partitions: int
    create_seconds: float
    restart_seconds: float
    memory_mb: float
    idle_percent: float

    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            str(self.brokers),
            f"{self.partitions:,}",
            f"{number(self.create_seconds)} s",
            f"{number(self.restart_seconds)} s",
            f"{number(self.memory_mb)} MB",
            f"{number(self.idle_percent)}%",
        )


def measure(make: Callable[[int], Brokers], count: int, partitions: int, idle_seconds: float) -> Grown:
    with make(count) as brokers:
        began = time.monotonic()
        brokers.create_topic("many", partitions)
        created = time.monotonic() - began
        time.sleep(_SETTLING_SECONDS)
        with brokers.cpu() as cpu:
            time.sleep(idle_seconds)
        idle = 100 * cpu[0] / idle_seconds
        memory = brokers.resident_bytes() / 1e6
        began = time.monotonic()
        brokers.restart()
        brokers.await_whole()
        restarted = time.monotonic() - began
        return Grown(brokers.name, count, partitions, created, restarted, memory, idle)


# What is measured, the most telling first: a run ends when it has taken too long.
CASES: Final[Sequence[tuple[Callable[[int], Brokers], int, int]]] = [
    *((InOneProcess, 3, partitions) for partitions in PARTITIONS),
    *((Barnabas, 3, partitions) for partitions in PARTITIONS[:2]),
    *((Kafka, 3, partitions) for partitions in PARTITIONS[:2]),
    *((InOneProcess, count, partitions) for count in (1, 5) for partitions in PARTITIONS),
    (Barnabas, 3, PARTITIONS[2]),
    (Barnabas, 5, PARTITIONS[1]),
    (Kafka, 3, PARTITIONS[2]),
]
# Every number of brokers, with fewer partitions, and no Apache Kafka, whose start takes longer than all of this.
QUICK_CASES: Final[Sequence[tuple[Callable[[int], Brokers], int, int]]] = [
    *((InOneProcess, count, partitions) for count in (1, 3, 5) for partitions in QUICK_PARTITIONS),
    (Barnabas, 3, QUICK_PARTITIONS[1]),
]
NO_MORE_AFTER: Final = 900.0


def main(quick: bool = False) -> None:
    missing = unavailable()
    if missing:
        print(f"growth: left out, because ZooKeeper cannot run here: {missing}")
        return
    allow_open_files(65536)
    began = time.monotonic()
    done: list[Grown] = []
    notes: list[str] = []
    others = machine.OtherLoad()
    cases = QUICK_CASES if quick else CASES
    for make, count, partitions in cases:
        if time.monotonic() - began > NO_MORE_AFTER:
            notes.append(f"Only {len(done)} of {len(cases)} cases: the time was over.")
            break
        done.append(measure(make, count, partitions, 1.0 if quick else IDLE_SECONDS))
        say(", ".join(f"{name} {cell}" for name, cell in zip(HEADER, done[-1].cells(), strict=True)).strip())
    notes.append(f"Other processes took {others.share():.0%} of the machine's CPU meanwhile.")
    done.sort(key=lambda each: (each.name, each.brokers, each.partitions))
    facts = {**machine.describe(), "apache kafka": KAFKA_VERSION}
    heading = f"{facts['date']}, {facts['cpu']}, {facts['cores']} cores; Apache Kafka {facts['apache kafka']}"
    text = "\n".join([heading, "", aligned([HEADER, *(each.cells() for each in done)]), "", *notes])
    print(f"\n{text}")
    if quick:
        return
    (RESULTS / "growth.txt").write_text(text + "\n")
    content = {"machine": facts, "notes": notes, "lines": [each._asdict() for each in done]}
    (RESULTS / "growth.json").write_text(json.dumps(content, indent=2) + "\n")
    print(f"written: {os.path.relpath(RESULTS / 'growth')}.txt, .json")

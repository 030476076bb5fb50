"""Three Barnabas brokers and three Apache Kafka brokers under the same load on this machine, side by side.

Replication factor 3, acks=all, min.insync.replicas 2. All clusters run all the time. A round does each piece of work
once, against one cluster and right after that against the next; the first rounds are warm-ups. Then brokers die, in
turn on either side. Ratios are computed within a round.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence

from benchmarks.broker import machine, report
from benchmarks.broker.comparison import Figures, Row, compare
from benchmarks.broker.contestants import BARE
from benchmarks.broker.lines import Measured
from benchmarks.broker.run import RESULTS, TOO_BUSY, allow_open_files, say
from benchmarks.cluster import lines
from benchmarks.cluster.contestants import (
    BARNABAS,
    IN_ONE,
    KAFKA,
    SESSION_MS,
    AroundZooKeeper,
    Barnabas,
    Brokers,
    InOneProcess,
    Kafka,
)
from benchmarks.cluster.lines import FAULTS, IN_ONE_LINES, LINES, WORKS, Fault, Scale, Work, new_name
from tests.support.zookeeper import KAFKA_VERSION, unavailable


def main(quick: bool = False, only: Sequence[str] = ()) -> None:
    """Measure, print and save the results. With `only`, measure and print only the parts with matching names."""
    works = [each for each in WORKS if _is_asked(each.name, only)]
    faults = [each for each in FAULTS if _is_asked(each.name, only)]
    if not works and not faults:
        names = [*(work.name for work in WORKS), *(fault.name for fault in FAULTS)]
        sys.exit(f"no such work: {', '.join(only)}; there are: {', '.join(names)}")
    missing = unavailable()
    if missing:
        print(f"cluster: left out, because Apache Kafka {KAFKA_VERSION} cannot run here: {missing}")
        return
    allow_open_files(65536)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that all brokers stop too
    run = Run(lines.QUICK if quick else lines.FULL, works, faults)
    run.measure()
    text = run.text()
    print(f"\n{text}")
    if only:
        return
    name = "cluster-quick" if quick else "cluster"
    (RESULTS / f"{name}.txt").write_text(text + "\n")
    (RESULTS / f"{name}.json").write_text(json.dumps(run.as_json(), indent=2) + "\n")
    print(f"written: {os.path.relpath(RESULTS / name)}.txt, .json")


def _is_asked(name: str, only: Sequence[str]) -> bool:
    return not only or any(each.lower() in name.lower() for each in only)


class Run:
    def __init__(self, scale: Scale, works: Sequence[Work], faults: Sequence[Fault]) -> None:
        self.scale = scale
        self.works = works
        self.faults = faults
        self.figures = Figures()
        self.notes: list[str] = []
        self.rounds = 0
        self._began = time.monotonic()
        self.facts = {**machine.describe(), "apache kafka": KAFKA_VERSION}

    def measure(self) -> None:
        others = machine.OtherLoad()
        # Apache Kafka comes last: while others start, three JVMs would still be compiling.
        with InOneProcess() as in_one, Barnabas() as barnabas, Kafka() as kafka:
            everyone: list[Brokers] = [kafka, barnabas, in_one]
            for each in everyone:
                say(f"{each.name}: ready in {each.seconds_to_ready:.2f} s")
                self.figures.add(each.name, {"ready": each.seconds_to_ready})
            if self.works:
                for number in range(1 - self.scale.warm_ups, self.scale.rounds + 1):
                    if time.monotonic() - self._began > self.scale.no_more_rounds_after and self.rounds > 0:
                        self.notes.append(f"Only {self.rounds} of {self.scale.rounds} rounds: the time was over.")
                        break
                    self._round(number, everyone)
                for each in everyone:
                    self.figures.add(each.name, {"memory": each.resident_bytes() / lines.MEGABYTE})
            for fault in self.faults:
                self._run_fault(fault, [kafka, barnabas])
        share = others.share()
        sentence = f"Other processes took {share:.0%} of the machine's CPU meanwhile"
        self.notes.append(sentence + (", so all of this is rough." if share > TOO_BUSY else "."))

    def _round(self, number: int, everyone: Sequence[Brokers]) -> None:
        for work in self.works:
            for brokers in everyone:
                topic = new_name(work.name)
                brokers.create_topic(topic, work.partitions)
                measured = work.against(brokers, topic, self.scale)
                brokers.delete_topic(topic)
                self._note("warm-up" if number < 1 else f"round {number}", work.name, brokers.name, measured)
        self.rounds = number

    def _run_fault(self, fault: Fault, everyone: Sequence[AroundZooKeeper]) -> None:
        for number in range(1, fault.times(self.scale) + 1):
            for brokers in everyone:
                topic = new_name(fault.name)
                brokers.create_topic(topic, fault.partitions)
                measured = fault.against(brokers, topic, self.scale)
                brokers.delete_topic(topic)
                self._note(f"round {number}", fault.name, brokers.name, measured)
            if fault.bare is not None:
                self._note(f"round {number}", fault.name, BARE, fault.bare(self.scale))

    def _note(self, when: str, work: str, contestant: str, measured: Measured) -> None:
        shown = ", ".join(f"{key} {report.number(value)}" for key, value in measured.figures.items())
        say(f"{when}: {work}: {contestant}: {shown}")
        if when != "warm-up":
            self.figures.add(contestant, measured.figures)
            self.figures.add_client_busy(contestant, measured.client_busy)

    # --- what came out ---

    @property
    def rows(self) -> list[Row]:
        return compare(LINES, self.figures, ours=BARNABAS, theirs=KAFKA, bare=BARE)

    @property
    def rows_in_one(self) -> list[Row]:
        return compare(IN_ONE_LINES, self.figures, ours=IN_ONE, theirs=KAFKA, bare=BARE)

    def text(self) -> str:
        heading = report.Report(self.rows, self.facts, self.rounds, [], self.scale.warm_ups).heading()
        return "\n".join(
            [
                *heading,
                f"Three brokers, replication factor 3, acks=all, min.insync.replicas 2, sessions of {SESSION_MS} ms.",
                "",
                "Three processes around ZooKeeper, of either make:",
                "",
                report.table(self.rows),
                "",
                "Three Barnabas brokers in one process (`barnabas serve --brokers 3`), Apache Kafka as above:",
                "",
                report.table(self.rows_in_one),
                "",
                "A ratio is Barnabas's figure divided by Apache Kafka's, taken within each round: the median, and the "
                "spread. Memory and CPU are sums over the brokers; ZooKeeper is not among them. The bare loop only "
                "writes as much as the follower to a new file.",
                *self.notes,
            ]
        )

    def as_json(self) -> dict[str, object]:
        return {
            "machine": self.facts,
            "rounds": self.rounds,
            "notes": self.notes,
            "lines": [row.as_json() for row in self.rows],
            "lines_in_one_process": [row.as_json() for row in self.rows_in_one],
        }

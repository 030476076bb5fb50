"""Barnabas and Apache Kafka under the same load on this machine, side by side: one table of ratios.

Both brokers run all the time. A round does every piece of work once, against one broker and right after that against
the other, so that a busy moment of the machine affects both. The first round is a warm-up and is not counted. Ratios
are computed within a round; the table has their median and spread over the rounds.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.broker import lines, machine, report
from benchmarks.broker.comparison import Figures, Row, compare
from benchmarks.broker.contestants import BARE, BARNABAS, KAFKA, Barnabas, Contestant, Kafka
from benchmarks.broker.lines import LINES, WORKS, Measured, Scale, Work
from tests.support.apache_kafka import unavailable

RESULTS: Final = Path(__file__).parents[1] / "results"
WARM_UP: Final = 0
# The share of CPU that other processes may use before the figures become unreliable.
TOO_BUSY: Final = 0.1


def main(quick: bool = False, only: Sequence[str] = ()) -> None:
    """Measure, print and save the results. With `only`, measure and print only the parts with matching names."""
    works = [work for work in WORKS if not only or any(name.lower() in work.name.lower() for name in only)]
    if not works:
        sys.exit(f"no such work: {', '.join(only)}; there are: {', '.join(work.name for work in WORKS)}")
    missing = unavailable()
    if missing:
        print(f"broker: left out, because Apache Kafka cannot run here: {missing}")
        return
    allow_open_files(4096)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that both brokers stop too
    scale = lines.QUICK if quick else lines.FULL
    run = Run(dataclasses.replace(scale, starts=1) if only else scale, works)
    rows = run.measure()
    facts = machine.describe()
    result = report.Report(rows, facts, run.rounds, [*report.explanations(rows), *run.notes])
    print(f"\n{result.text()}")
    if only:
        return
    for path in result.write(RESULTS, "broker-quick" if quick else "broker"):
        print(f"written: {os.path.relpath(path)}")


class Run:
    """One run of the comparison."""

    def __init__(self, scale: Scale, works: Sequence[Work] = WORKS) -> None:
        self.scale = scale
        self.works = works
        self.figures = Figures()
        self.notes: list[str] = []
        self.rounds = 0  # how many were counted
        self._began = time.monotonic()

    def measure(self) -> list[Row]:
        self._time_starts()
        with Kafka() as kafka, Barnabas() as barnabas:
            contestants: list[Contestant] = [kafka, barnabas]
            for each in contestants:
                self.figures.add(each.name, {"ready": each.seconds_to_ready})
                lines.prepare(each)
            works = self._possible(contestants)
            others = machine.OtherLoad()
            for number in range(WARM_UP, self.scale.rounds + 1):
                if time.monotonic() - self._began > self.scale.no_more_rounds_after and self.rounds:
                    self.notes.append(f"Only {self.rounds} of {self.scale.rounds} rounds: the time was over.")
                    break
                self._round(number, works, contestants)
            self._note_others(others.share())
            for each in contestants:
                self.figures.add(each.name, {"memory": each.resident_bytes() / 1e6})
        return compare(LINES, self.figures, ours=BARNABAS, theirs=KAFKA, bare=BARE)

    def _note_others(self, share: float) -> None:
        sentence = f"Other processes took {share:.0%} of the machine's CPU meanwhile"
        self.notes.append(sentence + (", so all of this is rough." if share > TOO_BUSY else "."))

    def _time_starts(self) -> None:
        """Start both a few times just to measure that; the start before the load is one more sample."""
        for number in range(1, self.scale.starts):
            for contestant in (Kafka(), Barnabas()):
                with contestant:
                    self.figures.add(contestant.name, {"ready": contestant.seconds_to_ready})
                    say(f"start {number}: {contestant.name} ready in {contestant.seconds_to_ready:.2f} s")

    def _possible(self, contestants: Sequence[Contestant]) -> list[Work]:
        served = [each.served_apis() for each in contestants]
        works = []
        for work in self.works:
            if all(work.needs <= apis for apis in served):
                works.append(work)
            else:
                needed = ", ".join(sorted(key.api_name for key in work.needs))
                self.notes.append(f"Left out: {work.name}, which needs {needed}.")
        return works

    def _round(self, number: int, works: Sequence[Work], contestants: Sequence[Contestant]) -> None:
        for work in works:
            topic = f"{work.name.replace(',', '').replace(' ', '-')}-{number}"
            for contestant in contestants:
                contestant.create_topic(topic, work.partitions)
                self._note(number, work, contestant.name, work.against(contestant, topic, self.scale))
            for contestant in contestants:
                contestant.delete_topic(topic)
            if work.bare is not None and number != WARM_UP:
                self._note(number, work, BARE, work.bare(self.scale))
        self.rounds = number

    def _note(self, number: int, work: Work, contestant: str, measured: Measured) -> None:
        shown = ", ".join(f"{key} {report.number(value)}" for key, value in measured.figures.items())
        say(f"{'warm-up' if number == WARM_UP else f'round {number}'}: {work.name}: {contestant}: {shown}")
        if number != WARM_UP:
            self.figures.add(contestant, measured.figures)
            self.figures.add_client_busy(contestant, measured.client_busy)


def allow_open_files(count: int) -> None:
    """Raise the limit of open files: a thousand connections at both ends exceed the default on some machines."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def say(line: str) -> None:
    print(line, flush=True)

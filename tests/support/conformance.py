"""The conformance report of Apache Kafka and Barnabas, side by side: `make conformance` writes it.

It has no times, no addresses and nothing else specific to one run, so that it changes only with a broker or the
catalogue.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from barnabas.client.connection import parse_address
from barnabas.conformance.catalogue import rooms
from barnabas.conformance.reports.summary import in_words
from barnabas.conformance.runner import run_all, selected
from barnabas.conformance.target import look_at
from barnabas.conformance.verdict import Result, Verdict
from tests.support.apache_kafka import VERSION, ApacheKafka, unavailable
from tests.support.broker_process import BrokerProcess

REPORT = Path(__file__).parents[2] / "barnabas" / "conformance" / "report.md"

MARKS = {Verdict.PASSED: "yes", Verdict.FAILED: "**no**", Verdict.NOT_APPLICABLE: "n/a"}

# Long enough for a busy machine.
SECONDS = 60.0

HEAD = """\
# Conformance

The results of `barnabas conformance` for Apache Kafka {version}, the reference, and for Barnabas. `make conformance`
writes this page; do not edit it. **no** means that the broker does not follow the rule; n/a means that it does not
advertise what the rule is about.

| | |
|---|---|
| Apache Kafka {version} | {kafka} |
| Barnabas | {barnabas} |
"""


def check_broker(bootstrap: str) -> list[Result]:
    return run_all(look_at([parse_address(bootstrap)], SECONDS), selected([]), SECONDS)


def check_apache_kafka() -> list[Result]:
    with ApacheKafka() as kafka:
        return check_broker(kafka.bootstrap)


def check_barnabas() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="barnabas-") as data, BrokerProcess(data) as broker:
        return check_broker(broker.bootstrap)


def render(kafka: Sequence[Result], barnabas: Sequence[Result]) -> str:
    theirs = {result.check.name: result for result in kafka}
    ours = {result.check.name: result for result in barnabas}
    parts = [HEAD.format(version=VERSION, kafka=in_words(kafka), barnabas=in_words(barnabas))]
    failures = [
        f"- `{name}`, {who}: expected {escaped(result.expected)}, saw {escaped(result.seen)}"
        for who, results in (("Apache Kafka", theirs), ("Barnabas", ours))
        for name, result in results.items()
        if result.verdict is Verdict.FAILED
    ]
    if failures:
        parts.append("\n".join(("## What failed", "", *failures, "")))
    for room in rooms():
        rows = [
            f"| `{check.name}` | {escaped(check.rule)} | {check.stands_on} "
            f"| {MARKS[theirs[check.name].verdict]} | {MARKS[ours[check.name].verdict]} |"
            for check in room.checks
        ]
        head = "| check | rule | based on | Apache Kafka | Barnabas |\n|---|---|---|---|---|"
        parts.append("\n".join((f"## {room.title}", "", head, *rows, "")))
    return "\n".join(parts)


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def committed_verdicts() -> dict[str, tuple[Verdict, Verdict]]:
    """What the report in the repository says: each check with Apache Kafka's verdict and Barnabas'."""
    verdicts = {mark: verdict for verdict, mark in MARKS.items()}
    found = {}
    for line in REPORT.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found[cells[0].strip("` ")] = verdicts[cells[-2]], verdicts[cells[-1]]
    return found


def main() -> int:
    reason = unavailable()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    kafka = check_apache_kafka()
    barnabas = check_barnabas()
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(render(kafka, barnabas), encoding="utf-8")
    print(f"Apache Kafka {VERSION}: {in_words(kafka)}\nBarnabas: {in_words(barnabas)}\nwritten to {REPORT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

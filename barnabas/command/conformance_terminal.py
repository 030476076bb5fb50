"""What a conformance run found, on a terminal: a line per room, and every failure in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from barnabas.command.table import render
from barnabas.conformance.catalogue import Check
from barnabas.conformance.reports.summary import by_room, counts, in_words
from barnabas.conformance.verdict import Result, Verdict

_MARKS = {Verdict.PASSED: "ok", Verdict.FAILED: "FAILED", Verdict.NOT_APPLICABLE: "n/a"}


def terminal(results: Sequence[Result], *, verbose: bool = False) -> str:
    parts = []
    if verbose:
        columns = {"verdict": "VERDICT", "check": "CHECK", "stands_on": "BASED ON", "seen": "REMARK"}
        parts.append(render(columns, [_row(result) for result in results]))
    failures = [result for result in results if result.verdict is Verdict.FAILED]
    parts += [_failure(result) for result in failures]
    columns = {"room": "ROOM", "title": "", "passed": "PASSED", "failed": "FAILED", "not_applicable": "N/A"}
    parts.append(render(columns, [_room_row(room.name, room.title, found) for room, found in by_room(results)]))
    parts.append(f"{len(results)} checks: {in_words(results)}")
    return "\n\n".join(parts)


def listing(checks: Sequence[Check]) -> str:
    return render(
        {"check": "CHECK", "stands_on": "BASED ON", "rule": "RULE"},
        [{"check": each.name, "stands_on": each.stands_on, "rule": each.rule} for each in checks],
    )


def _row(result: Result) -> dict[str, str]:
    remark = result.seen if result.verdict is Verdict.NOT_APPLICABLE else ""
    return {
        "verdict": _MARKS[result.verdict],
        "check": result.check.name,
        "stands_on": result.check.stands_on,
        "seen": remark,
    }


def _room_row(name: str, title: str, results: list[Result]) -> dict[str, object]:
    found = counts(results)
    return {
        "room": name,
        "title": title,
        "passed": found[Verdict.PASSED],
        "failed": found[Verdict.FAILED],
        "not_applicable": found[Verdict.NOT_APPLICABLE],
    }


def _failure(result: Result) -> str:
    return "\n".join(
        (
            f"FAILED  {result.check.name}",
            f"  {result.check.rule}  [{result.check.stands_on}]",
            f"  expected  {result.expected}",
            f"  saw       {result.seen}",
        )
    )


class Progress:
    """A line that counts the checks, on a terminal only."""

    def __init__(self, total: int, stream: IO[str]) -> None:
        self._total = total
        self._ended = 0
        self._failed = 0
        self._stream = stream
        self._shown = stream.isatty()

    def done(self, result: Result) -> None:
        self._ended += 1
        self._failed += result.verdict is Verdict.FAILED
        if self._shown:
            self._stream.write(f"\r\x1b[K{self._ended} of {self._total}, {self._failed} failed: {result.check.name}")
            self._stream.flush()

    def clear(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

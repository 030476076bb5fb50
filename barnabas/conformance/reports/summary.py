"""Counting verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.conformance.catalogue import Room, rooms
from barnabas.conformance.verdict import Result, Verdict


def counts(results: Iterable[Result]) -> dict[Verdict, int]:
    found = dict.fromkeys(Verdict, 0)
    for result in results:
        found[result.verdict] += 1
    return found


def in_words(results: Sequence[Result]) -> str:
    found = counts(results)
    return ", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict)


def by_room(results: Sequence[Result]) -> list[tuple[Room, list[Result]]]:
    """The rooms in the run, each with its results in catalogue order."""
    grouped = [(room, [result for result in results if result.check.room == room.name]) for room in rooms()]
    return [(room, found) for room, found in grouped if found]

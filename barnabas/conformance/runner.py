"""Runs checks: in parallel where they do not disturb each other, each with a time limit and a clean-up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from barnabas.client.requests import admin
from barnabas.conformance.catalogue import Check, rooms
from barnabas.conformance.probe import Probe
from barnabas.conformance.strict_wire import Deadline, StrictWire
from barnabas.conformance.target import Target
from barnabas.conformance.verdict import Failed, NotApplicable, Result, Step, Verdict
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest

# A check mostly waits for the broker.
AT_ONCE: Final = 8
DELETED_AT_ONCE: Final = 100


def selected(patterns: Sequence[str]) -> list[Check]:
    """The checks whose names match one of the patterns (`fetch.*`, a room's name, a whole name), or all."""
    every = [check for room in rooms() for check in room.checks]
    if not patterns:
        return every
    return [check for check in every if any(_matches(check, pattern) for pattern in patterns)]


def _matches(check: Check, pattern: str) -> bool:
    return check.room == pattern or fnmatchcase(check.name, pattern)


def run_all(
    target: Target,
    checks: Sequence[Check],
    seconds: float,
    at_once: int = AT_ONCE,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Return the results in catalogue order. `done` is called with each result as its check ends."""
    run = Run(target, seconds)
    results: dict[str, Result] = {}

    def keep(result: Result) -> None:
        results[result.check.name] = result
        done(result)

    try:
        with ThreadPoolExecutor(at_once, thread_name_prefix="check") as pool:
            together = [pool.submit(run.check, check) for check in checks if not check.alone]
            try:
                for future in as_completed(together):
                    keep(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for check in checks:
            if check.alone:
                keep(run.check(check))
    finally:
        run.delete_topics()
    return [results[check.name] for check in checks]


class Run:
    """One run. Its name is part of everything that its checks create, to tell it from what else is there."""

    def __init__(self, target: Target, seconds: float) -> None:
        self.name = f"conformance-{os.urandom(4).hex()}"
        self._target = target
        self._seconds = seconds
        self._topics: list[str] = []

    def check(self, check: Check) -> Result:
        started = time.monotonic()
        lacking = self._target.lacks(check)
        if lacking is not None:
            return Result(check, Verdict.NOT_APPLICABLE, "", lacking, 0.0)
        probe = Probe(self._target, check, self.name, self._seconds)
        verdict, expected, seen = Verdict.PASSED, "", ""
        try:
            check.body(probe)
        except NotApplicable as reason:
            verdict, seen = Verdict.NOT_APPLICABLE, str(reason)
        except Failed as failure:
            verdict, expected, seen = Verdict.FAILED, failure.expected, failure.seen
        except Exception as error:  # a response so strange that the check itself fails; the run continues
            verdict, expected = Verdict.FAILED, "responses that make sense"
            seen = f"{type(error).__name__}: {error}"
        took = time.monotonic() - started
        steps = list(probe.steps)
        if verdict is Verdict.FAILED and (not steps or steps[-1] != Step(expected, seen)):
            steps.append(Step(expected, seen))
        probe.clean()
        self._topics += probe.topics
        name = self.name
        return Result(check, verdict, _without(name, expected), _without(name, seen), took, _all_without(name, steps))

    def delete_topics(self) -> None:
        """What cannot be deleted stays: the broker may be gone."""
        if ApiKey.DELETE_TOPICS not in self._target.versions:
            return
        address = self._target.nodes.get(self._target.controller, self._target.bootstrap)
        version = min(self._target.versions[ApiKey.DELETE_TOPICS].highest, DeleteTopicsRequest.versions.highest)
        with suppress(Failed):
            wire = StrictWire(address, Deadline(self._seconds), self._target.security)
            try:
                for begin in range(0, len(self._topics), DELETED_AT_ONCE):
                    names = self._topics[begin : begin + DELETED_AT_ONCE]
                    wire.ask(ApiKey.DELETE_TOPICS, admin.delete_topics(*names), version)
            finally:
                wire.close()


def _without(run: str, text: str) -> str:
    """Remove the names of this run, so that the reports of two runs can be compared."""
    return text.replace(run, "RUN")


def _all_without(run: str, steps: Iterable[Step]) -> list[Step]:
    return [Step(_without(run, step.expected), _without(run, step.seen)) for step in steps]

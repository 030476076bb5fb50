"""Many seeds on several cores."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.simulation.plan import draw
from barnabas.simulation.run import run
from barnabas.simulation.story import summary


class _Task(NamedTuple):
    seed: int
    brokers: int | None
    seconds: float
    weather: str | None


class Outcome(NamedTuple):
    seed: int
    summary: str
    promise: str  # that was broken, or nothing
    simulated_seconds: float
    seconds: float


def run_many(
    seeds: Sequence[int],
    brokers: int | None,
    seconds: float,
    weather: str | None,
    jobs: int,
    tell: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run seeds, and tell of each when it is done. Returns those that broke a promise, by seed."""
    tasks = [_Task(seed, brokers, seconds, weather) for seed in seeds]
    broken = []
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for outcome in pool.imap_unordered(_run, tasks):
            tell(outcome)
            if outcome.promise:
                broken.append(outcome)
    return sorted(broken)


def _run(task: _Task) -> Outcome:
    began = time.process_time()
    try:
        result = run(draw(task.seed, brokers=task.brokers, seconds=task.seconds, weather=task.weather))
    except Exception:
        text = f"seed {task.seed}: the simulation itself failed\n{traceback.format_exc()}"
        return Outcome(task.seed, text, "the simulation works", 0.0, time.process_time() - began)
    return Outcome(task.seed, summary(result), result.promise, result.simulated_seconds, result.seconds)

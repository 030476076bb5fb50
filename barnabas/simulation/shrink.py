"""Making a failing run shorter: fewer faults, fewer clients, less time, as long as the same promise breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from barnabas.simulation.plan import Plan
from barnabas.simulation.run import Result, run


def shrink(result: Result, tell: Callable[[str], None], most_runs: int = 200) -> Result:
    """The shortest run that was found to break the same promise."""
    promise = result.promise
    best = result
    runs = 0
    progress = True
    while progress and runs < most_runs:
        progress = False
        for candidate in _shorter(best.plan, best):
            runs += 1
            tried = run(candidate)
            if tried.promise == promise:
                best = tried
                progress = True
                tell(f"{len(candidate.faults)} faults, {len(candidate.clients)} clients, {candidate.seconds:.1f} s")
                break
            if runs >= most_runs:
                break
    return best


def _shorter(plan: Plan, result: Result) -> Iterator[Plan]:
    """Plans that are a little less than this one, the boldest first."""
    count = len(plan.faults)
    size = count
    while size:
        for start in range(0, count, size):
            yield plan.without(faults=frozenset(range(start, min(start + size, count))))
        size //= 2
    for number in range(len(plan.clients)):
        yield plan.without(clients=frozenset({number}))
    last = max((fault.at + fault.seconds for fault in plan.faults), default=0.0)
    for seconds in (last + 1, plan.seconds / 2, plan.seconds * 0.8):
        if seconds < plan.seconds - 0.5:
            yield replace(plan, seconds=round(seconds, 3))
    if plan.brokers > 3:
        yield replace(plan, brokers=plan.brokers - 1)
    if len(plan.topics) > 1:
        yield replace(plan, topics=plan.topics[:1])

"""What happened in a run, for a person who wants to understand it."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.simulation.run import Result
from barnabas.simulation.trace import Event

# What is worth reading; everything else is for --verbose.
_TOLD = frozenset({"fault", "role", "finding", "traceback", "warning", "error", "critical", "", "client"})


def tell(result: Result, *, verbose: bool = False) -> Iterator[str]:
    plan = result.plan
    yield f"seed {plan.seed}: {plan.brokers} brokers, {plan.seconds:.0f} s of faults, {len(plan.faults)} faults"
    yield f"topics: {', '.join(f'{name} with {count} partitions' for name, count in plan.topics)}"
    yield f"clients: {', '.join(f'{each.name} ({each.kind})' for each in plan.clients)}"
    for name, value in (*plan.settings.items(), *plan.topic_settings.items()):
        yield f"    {name}={value}"
    yield ""
    for event in result.trace.events:
        if verbose or worth_telling(event):
            yield from lines(event)
    yield ""
    if result.beliefs:
        yield "What each broker believes:"
        yield from (f"  {line}" for line in result.beliefs)
        yield ""
    for finding in result.findings:
        yield f"BROKEN: {finding.promise}"
        yield f"        {finding.what}"
    yield summary(result)


def summary(result: Result) -> str:
    outcome = f"BROKEN: {result.findings[0]}" if result.findings else "ok"
    speed = result.simulated_seconds / result.seconds if result.seconds else 0
    return (
        f"seed {result.plan.seed}: {result.simulated_seconds:.1f} s simulated in {result.seconds:.2f} s ({speed:.0f}x),"
        f" {result.events} events, {len(result.history.sends)} sends, {len(result.history.polls)} polls,"
        f" {result.digest}: {outcome}"
    )


def worth_telling(event: Event) -> bool:
    return event.kind in _TOLD or (
        event.kind == "registry" and ("/state = " in event.what or "/controller" in event.what)
    )


def lines(event: Event) -> Iterator[str]:
    first, *more = event.what.rstrip().split("\n")
    mark = {"fault": "!", "finding": "X", "role": "*", "error": "E", "traceback": "E", "warning": "w"}.get(
        event.kind, " "
    )
    yield f"{event.at:9.4f} {mark} {event.who:<10} {first}"
    for line in more:
        yield f"{'':24}{line}"

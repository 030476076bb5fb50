"""The progress of a run: what it waits for, rows, batches and lag, live on a terminal and in plain lines elsewhere."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from barnabas.pipeline.frames.decoding import SKIPPED

DEAD_LETTERS: Final = "dead-letters-"
"""The names of queries that write bad records begin with this; then comes the source."""


@dataclass
class QueryState:
    name: str
    how: str
    batch: int = -1  # its number, which goes on where the last run ended
    batches: int = 0  # of this run
    rows_in: int = 0
    rows_out: int = 0
    rows_per_second: float = 0.0
    bad_of: dict[str, int] = field(default_factory=dict)  # records that could not be read, by source
    late: int = 0  # rows that came after their window was over
    lag: dict[str, int] = field(default_factory=dict)  # by topic, as of the last batch
    busy_ms: int = 0
    ended: bool = False  # by itself; not one that was stopped

    @property
    def bad(self) -> int:
        return sum(self.bad_of.values())

    def found_bad(self, source: str, count: int) -> None:
        self.bad_of[source] = self.bad_of.get(source, 0) + count


class Board:
    """The state of every query, reported by Spark's listener and by our sinks from their own threads."""

    def __init__(
        self, changed: Callable[[QueryState], None] | None = None, bad: Callable[[str], None] | None = None
    ) -> None:
        """`bad` is told in words that records could not be read."""
        self.states: dict[str, QueryState] = {}
        self.something_ended = threading.Event()
        self._changed = changed or (lambda state: None)
        self._bad = bad or (lambda words: None)
        self._lock = threading.Lock()

    def add(self, name: str, how: str) -> None:
        self.states[name] = QueryState(name, how)

    def wrote(self, name: str, rows: int) -> None:
        with self._lock:
            state = self.states.get(name)
            if state is None:
                return
            state.rows_out += rows
            if not is_of_dead_letters(state) or not rows:
                return
            source = name.removeprefix(DEAD_LETTERS)
            state.found_bad(source, rows)
        self._bad(complaint(source, rows))

    def progressed(self, progress: Progress) -> None:
        with self._lock:
            state = self.states.get(progress.name or "")
            if state is None or progress.batchId <= state.batch:  # reported twice: by the listener, and at the end
                return
            state.batch = progress.batchId
            state.batches += 1
            state.rows_in += progress.numInputRows
            state.rows_per_second = progress.processedRowsPerSecond or 0.0
            state.busy_ms = progress.batchDuration
            state.rows_out += max(progress.sink.numOutputRows, 0)  # of Spark's own sinks; ours tell it themselves
            state.late += sum(each.numRowsDroppedByWatermark for each in progress.stateOperators)
            for source in progress.sources:
                state.lag.update(lag_by_topic(source.latestOffset, source.endOffset))
            skipped = skipped_by_source(progress.observedMetrics)
            for source, count in skipped.items():
                state.found_bad(source, count)
        for source, count in skipped.items():
            self._bad(f"{complaint(source, count)} (skipped by {state.name})")
        self._changed(state)


class Progress(Protocol):
    """The used part of Spark's StreamingQueryProgress."""

    @property
    def name(self) -> str | None: ...
    @property
    def batchId(self) -> int: ...
    @property
    def numInputRows(self) -> int: ...
    @property
    def processedRowsPerSecond(self) -> float: ...
    @property
    def batchDuration(self) -> int: ...
    @property
    def sources(self) -> Any: ...
    @property
    def sink(self) -> Any: ...
    @property
    def stateOperators(self) -> Any: ...
    @property
    def observedMetrics(self) -> Any: ...


def lag_by_topic(latest: str | None, reached: str | None) -> dict[str, int]:
    """Records between the two sets of offsets, which Spark gives as JSON: topic -> partition -> offset."""
    try:
        ends: dict[str, dict[str, int]] = json.loads(latest or "")
        done: dict[str, dict[str, int]] = json.loads(reached or "")
        return {
            topic: sum(max(0, end - done.get(topic, {}).get(number, 0)) for number, end in partitions.items())
            for topic, partitions in ends.items()
        }
    except (ValueError, AttributeError, TypeError):
        return {}


def skipped_by_source(observed: Mapping[str, Any]) -> dict[str, int]:
    """Of what a batch has observed, the records that it could not read and left out."""
    counts = {name.removeprefix(SKIPPED): row.records for name, row in observed.items() if name.startswith(SKIPPED)}
    return {source: count for source, count in counts.items() if count}


def is_of_dead_letters(state: QueryState) -> bool:
    return state.name.startswith(DEAD_LETTERS)


class Listener(StreamingQueryListener):
    def __init__(self, board: Board) -> None:
        self._board = board

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._board.progressed(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._board.something_ended.set()


class Display(Protocol):
    def __enter__(self) -> Display: ...
    def __exit__(self, *exc: object) -> None: ...
    def changed(self, state: QueryState) -> None: ...
    def bad(self, words: str) -> None: ...


class Waiting:
    """Says what a run waits for before its first batch: in one line that changes on a terminal, in lines elsewhere."""

    def __init__(self, console: Console, plain: bool) -> None:
        self._console = console
        self._status = None if plain else console.status("")
        self.words = ""

    def __enter__(self) -> Waiting:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, words: str) -> None:
        self.words = words
        if self._status is not None:
            self._status.update(f"{words}…")
        else:
            self._console.print(f"{words}…", highlight=False, soft_wrap=True)


def complaint(source: str, count: int) -> str:
    records = "record" if count == 1 else "records"
    return f"BAD RECORDS: {count:,} {records} of {source} could not be read"


def summary(states: dict[str, QueryState], seconds: float) -> list[str]:
    """What a run did, a line for each query."""
    lines = [f"after {seconds:.0f} s:"]
    for state in states.values():
        parts = [f"{state.rows_in:,} rows read"]
        parts += [f"{state.rows_out:,} written"] if state.rows_out and not is_of_dead_letters(state) else []
        parts += [f"{state.bad:,} bad"] if state.bad else []
        parts += [f"{state.late:,} too late"] if state.late else []
        behind = sum(state.lag.values())
        parts += [f"{behind:,} left to read"] if behind else []
        batches = "1 batch" if state.batches == 1 else f"{state.batches} batches"
        lines.append(f"  {state.name}: {', '.join(parts)}, {batches}")
    return lines


class PlainDisplay:
    """One line per batch that had rows."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: dict[str, int] = {}

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def changed(self, state: QueryState) -> None:
        if state.rows_in == self._last.get(state.name, 0):
            return
        self._last[state.name] = state.rows_in
        lag = ", ".join(f"{topic} {behind}" for topic, behind in state.lag.items())
        bad = f"{state.bad} bad, " if state.bad else ""
        late = f"{state.late} too late, " if state.late else ""
        self._console.print(
            f"{state.name}: batch {state.batch}, {state.rows_in} rows read, {state.rows_out} written, {bad}{late}"
            f"{state.rows_per_second:.0f} rows/s, {state.busy_ms / 1000:.1f} s, lag: {lag or '-'}",
            highlight=False,
            soft_wrap=True,
        )

    def bad(self, words: str) -> None:
        self._console.print(words, style="bold red", highlight=False, soft_wrap=True)


class LiveDisplay:
    """One table, redrawn in place."""

    def __init__(self, console: Console, title: str, board: Board, *, once: bool) -> None:
        """With `once` the end is known, and a bar shows how far it is."""
        self._title = title
        self._board = board
        self._once = once
        self._begun = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._table)

    def __enter__(self) -> LiveDisplay:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.refresh()
        self._live.__exit__(None, None, None)

    def changed(self, state: QueryState) -> None:
        pass

    def bad(self, words: str) -> None:
        self._live.console.print(words, style="bold red", highlight=False)

    def _table(self) -> Table:
        seconds = int(time.monotonic() - self._begun)
        table = Table(title=f"{self._title}, {seconds // 60}:{seconds % 60:02}", title_justify="left", expand=False)
        for column in ("query", "batch", "rows read", "rows/s", "rows written", "bad", "too late", "lag", ""):
            table.add_column(column, justify="left" if column in ("query", "lag", "") else "right")
        for state in self._board.states.values():
            lag = ", ".join(f"{topic} {behind:,}" for topic, behind in state.lag.items())
            table.add_row(
                state.name,
                "-" if state.batch < 0 else str(state.batch),
                f"{state.rows_in:,}",
                f"{state.rows_per_second:,.0f}",
                f"{state.rows_out:,}" if state.rows_out else "-",
                f"[bold red]{state.bad:,}[/]" if state.bad else "-",
                f"{state.late:,}" if state.late else "-",
                lag or "-",
                "done" if state.ended else self._bar(state) if self._once else "",
            )
        return table

    def _bar(self, state: QueryState) -> ProgressBar | str:
        end = state.rows_in + sum(state.lag.values())
        return ProgressBar(total=end, completed=state.rows_in, width=20) if end else ""

"""The progress of a run: rows per second, batches and lag, live on a terminal and in plain lines elsewhere."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from rich.console import Console
from rich.live import Live
from rich.table import Table


@dataclass
class QueryState:
    name: str
    how: str
    batch: int = -1
    rows_in: int = 0
    rows_out: int = 0
    rows_per_second: float = 0.0
    lag: dict[str, int] = field(default_factory=dict)  # by topic, as of the last batch
    busy_ms: int = 0
    ended: bool = False


class Board:
    """The state of every query, reported by Spark's listener and by our sinks from their own threads."""

    def __init__(self, changed: Callable[[QueryState], None] | None = None) -> None:
        self.states: dict[str, QueryState] = {}
        self.something_ended = threading.Event()
        self._changed = changed or (lambda state: None)
        self._lock = threading.Lock()

    def add(self, name: str, how: str) -> None:
        self.states[name] = QueryState(name, how)

    def wrote(self, name: str, rows: int) -> None:
        with self._lock:
            if name in self.states:
                self.states[name].rows_out += rows

    def progressed(self, progress: Progress) -> None:
        with self._lock:
            state = self.states.get(progress.name or "")
            if state is None or progress.batchId <= state.batch:  # reported twice: by the listener, and at the end
                return
            state.batch = progress.batchId
            state.rows_in += progress.numInputRows
            state.rows_per_second = progress.processedRowsPerSecond or 0.0
            state.busy_ms = progress.batchDuration
            for source in progress.sources:
                state.lag.update(lag_by_topic(source.latestOffset, source.endOffset))
        self._changed(state)

    def ended(self, name: str) -> None:
        if name in self.states:
            self.states[name].ended = True
        self.something_ended.set()


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


class Listener(StreamingQueryListener):
    def __init__(self, board: Board) -> None:
        self._board = board
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._names[str(event.runId)] = event.name or ""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._board.progressed(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._board.ended(self._names.get(str(event.runId), ""))


class Display(Protocol):
    def __enter__(self) -> Display: ...
    def __exit__(self, *exc: object) -> None: ...
    def changed(self, state: QueryState) -> None: ...


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
        self._console.print(
            f"{state.name}: batch {state.batch}, {state.rows_in} rows read, "
            f"{state.rows_per_second:.0f} rows/s, {state.busy_ms / 1000:.1f} s, lag: {lag or '-'}",
            highlight=False,
            soft_wrap=True,
        )


class LiveDisplay:
    """One table, redrawn in place."""

    def __init__(self, console: Console, title: str, board: Board) -> None:
        self._title = title
        self._board = board
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

    def _table(self) -> Table:
        seconds = int(time.monotonic() - self._begun)
        table = Table(title=f"{self._title}, {seconds // 60}:{seconds % 60:02}", title_justify="left", expand=False)
        for column in ("query", "batch", "rows read", "rows/s", "rows written", "lag", ""):
            table.add_column(column, justify="left" if column in ("query", "lag", "") else "right")
        for state in self._board.states.values():
            lag = ", ".join(f"{topic} {behind:,}" for topic, behind in state.lag.items())
            table.add_row(
                state.name,
                "-" if state.batch < 0 else str(state.batch),
                f"{state.rows_in:,}",
                f"{state.rows_per_second:,.0f}",
                f"{state.rows_out:,}" if state.rows_out else "-",
                lag or "-",
                "done" if state.ended else "",
            )
        return table

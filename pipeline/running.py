"""Running a pipeline: check everything, start Spark, then every sink's query, and wait for the requested end.

run(load("orders.yaml"), once=True)
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from barnabas.pipeline.announcing import Announcement, Announcer, console_of
from barnabas.pipeline.checkpoint import Checkpoint, Identity
from barnabas.pipeline.checks import problems_of
from barnabas.pipeline.cluster import Cluster, check_topics, with_every_partition
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.failures import explained
from barnabas.pipeline.frames.plan import spark_plan
from barnabas.pipeline.frames.views import build
from barnabas.pipeline.model import Pipeline
from barnabas.pipeline.progress import (
    Board,
    Display,
    Listener,
    LiveDisplay,
    PlainDisplay,
    QueryState,
    Waiting,
    summary,
)
from barnabas.pipeline.queries import Queries, Query
from barnabas.pipeline.session import is_submitted, log_file, session_for_run, ship

_LAST_BATCH = 10.0  # seconds that a batch under way gets when the pipeline is stopped


@dataclass(frozen=True)
class Outcome:
    """What a run did, by query."""

    states: dict[str, QueryState] = field(default_factory=dict)

    @property
    def rows_read(self) -> int:
        return sum(state.rows_in for state in self.states.values())


def run(
    pipeline: Pipeline,
    *,
    master: str | None = None,
    once: bool = False,
    seconds: float | None = None,
    plain: bool = True,
    console: Console | None = None,
    spark: SparkSession | None = None,
) -> Outcome:
    """Run until everything has been processed (`once`), for a time, or until KeyboardInterrupt. Failures are
    PipelineErrors.

    `spark` is a session to run in, which stays open; without it one is started, and stopped at the end.
    """
    console = console or Console()
    begun = time.monotonic()
    board = Board(lambda state: display.changed(state), lambda words: display.bad(words))
    display: Display
    display = PlainDisplay(console) if plain else LiveDisplay(console, f"pipeline {pipeline.name}", board, once=once)
    with _announced(pipeline, board, once) as told, Waiting(console, plain) as waiting:

        def say(words: str) -> None:
            waiting(words)
            told.words = words

        with prepared(pipeline, master=master, spark=spark, say=say) as ready:
            try:
                return _run(ready, board, display, console, once, seconds, waiting, told)
            except KeyboardInterrupt:
                raise
            except Exception as error:
                raise explained(error, pipeline, ready.log) from error
            finally:
                for line in summary(board.states, time.monotonic() - begun) if board.states else ():
                    console.print(line, highlight=False, soft_wrap=True)


@contextmanager
def _announced(pipeline: Pipeline, board: Board, once: bool) -> Iterator[Announcement]:
    """Tell a console how it goes, if there is one."""
    told = Announcement(pipeline, board.states, once=once)
    address = console_of(pipeline.bootstrap)
    announcer = None if address is None else Announcer(address, told)
    told.is_heard = announcer is not None
    try:
        yield told
        told.state = "ended"
    except KeyboardInterrupt:
        told.state = "ended"
        raise
    except BaseException as error:
        told.state, told.words = "failed", str(error)[:500]
        raise
    finally:
        if announcer is not None:
            announcer.close()


@dataclass
class Ready:
    """A pipeline that has passed every check, with a session of its own."""

    pipeline: Pipeline
    master: str
    checkpoint: Checkpoint
    identity: Identity
    session: SparkSession
    log: str | None
    topics: dict[str, int]
    cluster: Cluster


@contextmanager
def prepared(
    pipeline: Pipeline,
    *,
    master: str | None = None,
    spark: SparkSession | None = None,
    only_look: bool = False,
    say: Callable[[str], None] = lambda words: None,
) -> Iterator[Ready]:
    """Check what can be checked before Spark is started, start it, and leave nothing behind at the end.

    With `only_look`, nothing is created, and the pipeline may be running. `say` is told what the run waits for.
    """
    problems = problems_of(pipeline)
    if problems:
        raise PipelineError("\n".join(map(str, problems)))
    say(f"asking {pipeline.bootstrap} for its topics")
    cluster = Cluster(pipeline.bootstrap, pipeline.kafka)
    topics = check_topics(pipeline, cluster, create=not only_look)
    pipeline = with_every_partition(pipeline, topics)
    checkpoint = Checkpoint(pipeline.checkpoint)
    with ExitStack() as stack:
        if checkpoint.local is not None:
            checkpoint.check(pipeline.name, cluster.cluster_id)
        if not only_look:
            stack.enter_context(checkpoint.held())
        owner = spark
        if owner is None:
            # The options of spark-submit override the file, as --master does.
            chosen = master or (None if is_submitted() else pipeline.master)
            app = f"barnabas {pipeline.name}"
            say("starting Spark: Java, and the connector's jars, which are downloaded the first time")
            owner = stack.enter_context(session_for_run(app, master=chosen, settings=pipeline.spark))
        _leave_errors_to_us()
        try:
            ready = _ready(pipeline, owner, checkpoint, topics, cluster)
        except (Py4JError, ConnectionError) as error:
            raise explained(error, pipeline, None) from error
        yield ready


def _ready(
    pipeline: Pipeline, owner: SparkSession, checkpoint: Checkpoint, topics: dict[str, int], cluster: Cluster
) -> Ready:
    ship(owner.sparkContext)
    identity = checkpoint.check(pipeline.name, cluster.cluster_id, owner)
    # Views, settings and listeners of its own session end with it: runs do not affect each other.
    session = owner.newSession()
    for name, value in pipeline.spark.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    place = owner.sparkContext.master or ""
    return Ready(pipeline, place, checkpoint, identity, session, log_file(owner), topics, cluster)


def _leave_errors_to_us() -> None:
    """Py4J logs a trace for every call that Java does not answer, and pyspark one for many mistakes in a query."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _run(
    ready: Ready,
    board: Board,
    display: Display,
    console: Console,
    once: bool,
    seconds: float | None,
    waiting: Waiting,
    told: Announcement,
) -> Outcome:
    pipeline, session = ready.pipeline, ready.session
    waiting("Spark is there; looking at schemas and plans")
    views = build(session, pipeline, ready.identity.schemas)
    maker = Queries(pipeline, ready.identity, ready.checkpoint, console, board.wrote, ready.master)
    queries = maker.make(views)
    ready.checkpoint.save(replace(ready.identity, schemas=views.schemas), session)
    listener = Listener(board)
    started: list[StreamingQuery] = []
    session.streams.addListener(listener)
    waiting(f"starting {len(queries)} queries" if len(queries) > 1 else "starting the query")
    waiting.end()
    told.state, told.words = "running", ""
    try:
        with display:
            try:
                for query in queries:
                    board.add(query.name, query.how)
                    if told.is_heard:
                        told.plans[query.name] = spark_plan(query.frame)
                    started.append(query.start(ready.checkpoint, pipeline.trigger, once))
                with _interrupts() as interrupted:
                    _wait(started, board, maker, None if seconds is None else time.monotonic() + seconds, interrupted)
            finally:
                _stop(started, queries)
                _take_final_progress(started, board)
    finally:
        with suppress(Exception):  # Java may be gone; the exception that is being raised says so
            session.streams.removeListener(listener)
    if interrupted.is_set():
        raise KeyboardInterrupt
    return Outcome(board.states)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event. Raised in the middle of a call to Java they would leave that call half done."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(each, lambda number, frame: interrupted.set()) for each in signals]
    try:
        yield interrupted
    finally:
        for each, handler in zip(signals, previous, strict=True):
            signal.signal(each, handler)


def _wait(
    started: list[StreamingQuery],
    board: Board,
    maker: Queries,
    deadline: float | None,
    interrupted: threading.Event,
) -> None:
    """Wait until every query has ended, one has failed, the time is up, or somebody interrupts."""
    while True:
        active = []
        for query in started:
            if query.isActive:
                active.append(query)
            else:
                _raise_failure(query, maker)
                board.states[query.name or ""].ended = True
        if not active or interrupted.is_set() or (deadline is not None and time.monotonic() >= deadline):
            return
        board.something_ended.wait(0.2)
        board.something_ended.clear()


def _raise_failure(query: StreamingQuery, maker: Queries) -> None:
    failure = query.exception()
    if failure is None:
        return
    own = maker.failures.get(query.name or "")
    if isinstance(own, PipelineError):
        raise own
    raise failure


def _take_final_progress(started: list[StreamingQuery], board: Board) -> None:
    """Count every batch, also the one that was under way when the queries were stopped: a listener learns about a batch
    some time after it, and what it has not reported yet is read from the queries, after their end."""
    for query in started:
        try:
            for progress in query.recentProgress:
                board.progressed(progress)
        except Exception:
            break  # Java is gone; what was counted so far is all there is


def _stop(started: list[StreamingQuery], queries: list[Query]) -> None:
    """Let the current batch finish if it does so soon: an interrupted transaction blocks readers until its timeout."""
    deadline = time.monotonic() + _LAST_BATCH
    for query in started:
        try:
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(0.05)  # Spark reports a batch's end only through its status
        except Exception:
            break  # Java is gone; there is nothing to stop
    for query in started:
        try:
            query.stop()
        except Exception:
            break
    for each in queries:
        each.close()

"""The streaming queries of a pipeline: one per sink, and one per source for its dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console

from barnabas.pipeline.checkpoint import Checkpoint, Identity
from barnabas.pipeline.connector import KAFKA_OPTIONS
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.frames.encoding import encoded, has_position
from barnabas.pipeline.frames.plan import why_not_per_task
from barnabas.pipeline.frames.views import Views
from barnabas.pipeline.kafka_settings import for_java
from barnabas.pipeline.model import (
    BadRecordsAction,
    ConsoleSink,
    Delivery,
    Encoding,
    Format,
    OutputMode,
    ParquetSink,
    Pipeline,
    Sink,
    TopicSink,
    Trigger,
    Way,
)
from barnabas.pipeline.progress import DEAD_LETTERS
from barnabas.pipeline.sinks.console import show_batch
from barnabas.pipeline.sinks.dead_letters import dead_letters
from barnabas.pipeline.sinks.topic_per_batch import BatchWriter
from barnabas.pipeline.sinks.topic_per_task import write_batch
from barnabas.pipeline.sinks.transactions import Target

Wrote = Callable[[str, int], None]  # (query, rows)


@dataclass(frozen=True)
class Query:
    """A query to run: `how` is a description, `start` starts it, `close` is called after its end."""

    name: str
    view: str
    frame: DataFrame
    how: str
    mode: OutputMode
    attach: Callable[[DataStreamWriter], DataStreamWriter]
    close: Callable[[], None]

    def start(self, checkpoint: Checkpoint, trigger: Trigger, once: bool) -> StreamingQuery:
        writer = self.frame.writeStream.queryName(self.name).outputMode(self.mode.value)
        writer = writer.option("checkpointLocation", f"{checkpoint.location}/{self.name}")
        if once or trigger.once:
            writer = writer.trigger(availableNow=True)
        elif trigger.interval is not None:
            writer = writer.trigger(processingTime=trigger.interval)
        return self.attach(writer).start()


def _nothing() -> None:
    pass


class Queries:
    """Creates them. `wrote` is called with the rows written by our sinks; `failures` holds what these raised, by
    query."""

    def __init__(
        self,
        pipeline: Pipeline,
        identity: Identity,
        checkpoint: Checkpoint,
        console: Console,
        wrote: Wrote,
        master: str,
    ) -> None:
        self._pipeline = pipeline
        self._identity = identity
        self._checkpoint = checkpoint
        self._console = console
        self._wrote = wrote
        self._local = master.startswith("local")
        self.failures: dict[str, BaseException] = {}

    def make(self, views: Views) -> list[Query]:
        queries = [self._query(sink, views) for sink in self._pipeline.sinks]
        bad = self._pipeline.bad_records
        if bad.action is BadRecordsAction.DEAD_LETTER and bad.topic is not None:
            for name, decoded in views.decoded.items():
                source = self._pipeline.source(name)
                frame = dead_letters(
                    decoded, self._pipeline.name, source, source.value.schema or views.schemas.get(name)
                )
                if frame is not None:
                    sink = TopicSink(f"{DEAD_LETTERS}{name}", name, bad.topic, format=Format(Encoding.BYTES))
                    queries.append(self._per_task(sink, frame, f"bad records of {name} to the topic {bad.topic}"))
        return queries

    def _query(self, sink: Sink, views: Views) -> Query:
        frame = views.frames[sink.view]
        if not frame.isStreaming:
            raise PipelineError(
                f"sinks.{sink.name}: the view {sink.view!r} is made of tables only; a sink needs a stream"
            )
        match sink:
            case ParquetSink():
                return self._parquet(sink, frame)
            case ConsoleSink():
                return self._console_query(sink, frame)
            case TopicSink():
                if sink.delivery is Delivery.AT_LEAST_ONCE:
                    return self._at_least_once(sink, frame)
                return self._exactly_once(sink, frame)

    def _exactly_once(self, sink: TopicSink, frame: DataFrame) -> Query:
        objection = why_not_per_task(frame)
        if objection is None and not has_position(frame):
            objection = f"the view {sink.view!r} has lost the columns _topic, _partition and _offset; select them too"
        if sink.way is Way.PER_TASK and objection is not None:
            raise PipelineError(f"sinks.{sink.name}.way: per-task is not possible: {objection}. Or leave `way` out")
        rows = encoded(frame, sink)
        if sink.way is not Way.PER_BATCH and objection is None:
            return self._per_task(sink, rows, f"to the topic {sink.topic}, exactly once, one transaction per task")
        why = "as the file says" if sink.way is Way.PER_BATCH else f"because {objection}"
        return self._per_batch(
            sink, rows, f"to the topic {sink.topic}, exactly once, one transaction per batch ({why})"
        )

    def _per_task(self, sink: TopicSink, rows: DataFrame, how: str) -> Query:
        target = self._target(sink)

        def write(batch: DataFrame, batch_id: int) -> None:
            written, _ = write_batch(batch, batch_id, target)
            self._wrote(sink.name, written)

        return self._for_each(sink, rows, how, write)

    def _per_batch(self, sink: TopicSink, rows: DataFrame, how: str) -> Query:
        without_position = rows.drop("_topic", "_partition", "_offset")
        writers: list[BatchWriter] = []  # created with the first batch: explaining a pipeline must not touch anything

        def write(batch: DataFrame, batch_id: int) -> None:
            if not writers:
                writers.append(BatchWriter(self._target(sink), self._staging(sink)))
            self._wrote(sink.name, writers[0].write_batch(batch, batch_id))

        def close() -> None:
            for writer in writers:
                writer.close()

        return self._for_each(sink, without_position, how, write, close)

    def _at_least_once(self, sink: TopicSink, frame: DataFrame) -> Query:
        rows = encoded(frame, sink).drop("_topic", "_partition", "_offset")
        options = for_java(self._pipeline.bootstrap, self._pipeline.kafka)
        # Spark passes consumer settings only to consumers, by its own list; these are for reading.
        options = {name: value for name, value in options.items() if name not in KAFKA_OPTIONS}

        def attach(writer: DataStreamWriter) -> DataStreamWriter:
            return writer.format("kafka").options(**options).option("topic", sink.topic)

        how = f"to the topic {sink.topic}, at least once, by Spark's own sink"
        return Query(sink.name, sink.view, rows, how, sink.mode, attach, _nothing)

    def _parquet(self, sink: ParquetSink, frame: DataFrame) -> Query:
        for column in sink.partition_by:
            if column not in frame.columns:
                raise PipelineError(f"sinks.{sink.name}.partition_by: the view {sink.view!r} has no column {column!r}")

        def attach(writer: DataStreamWriter) -> DataStreamWriter:
            writer = writer.format("parquet").option("path", sink.path)
            return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer

        how = f"to Parquet files in {sink.path}, exactly once for readers that respect _spark_metadata, as Spark does"
        return Query(sink.name, sink.view, frame, how, OutputMode.APPEND, attach, _nothing)

    def _console_query(self, sink: ConsoleSink, frame: DataFrame) -> Query:
        def write(batch: DataFrame, batch_id: int) -> None:
            self._wrote(sink.name, show_batch(batch, batch_id, sink.name, sink.rows, self._console))

        return self._for_each(sink, frame, f"to the screen, {sink.rows} rows of every batch", write)

    def _for_each(
        self,
        sink: TopicSink | ConsoleSink,
        frame: DataFrame,
        how: str,
        write: Callable[[DataFrame, int], None],
        close: Callable[[], None] = _nothing,
    ) -> Query:
        def remembering(batch: DataFrame, batch_id: int) -> None:
            try:
                write(batch, batch_id)
            except BaseException as error:
                self.failures[sink.name] = error  # Spark would pass on only its text
                raise

        def attach(writer: DataStreamWriter) -> DataStreamWriter:
            return writer.foreachBatch(remembering)

        return Query(sink.name, sink.view, frame, how, sink.mode, attach, close)

    def _target(self, sink: TopicSink) -> Target:
        pipeline = self._pipeline
        query = self._identity.query(sink.name)
        return Target(pipeline.bootstrap, dict(pipeline.kafka), query, sink.topic, sink.transaction_timeout)

    def _staging(self, sink: TopicSink) -> Path | None:
        """Where large batches are staged: the folder that the file names, or beside a local checkpoint."""
        if sink.staging is not None:
            return Path(sink.staging)
        return self._checkpoint.local / "staging" if self._local and self._checkpoint.local is not None else None

"""A pipeline as plain data: sources, transformations, sinks, a checkpoint and a trigger.

A file becomes these objects (`barnabas.pipeline.file`), or a few lines of Python make them.
`barnabas.pipeline.checks.problems_of` says what is wrong with one, and `barnabas.pipeline.running.run` runs it. Nothing
here knows about Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

# Which record a row of a source came from.
POSITION_COLUMNS = ("_topic", "_partition", "_offset")


class Encoding(StrEnum):
    """How the bytes of a key or a value are read or written."""

    JSON = "json"
    AVRO = "avro"
    CSV = "csv"
    TEXT = "text"
    BYTES = "bytes"


class Delivery(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class Way(StrEnum):
    """How exactly-once is achieved; `auto` uses `per-task` where possible and `per-batch` elsewhere."""

    AUTO = "auto"
    PER_TASK = "per-task"
    PER_BATCH = "per-batch"


class OutputMode(StrEnum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


class BadRecordsAction(StrEnum):
    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class Format:
    """How a key or value is read. `schema` is DDL for JSON and CSV (None: inferred), JSON text for Avro."""

    encoding: Encoding = Encoding.BYTES
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    confluent_header: bool = False  # Avro behind the five bytes that a schema registry's serialisers put in front


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that become a view. A table has one row per key, the newest value; it is read again for every batch."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: str = "earliest"  # earliest, latest, JSON of topic -> partition -> offset, or milliseconds since 1970
    value: Format = Format()
    key: Format = Format(Encoding.TEXT)
    headers: bool = False
    watermark: Watermark | None = None
    table: bool = False
    max_records_per_batch: int | None = None


@dataclass(frozen=True, slots=True)
class SqlTransform:
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """`function` is `module:name`; it takes a DataFrame for each input, then `arguments` by name, and returns one."""

    name: str
    function: str
    inputs: tuple[str, ...]
    arguments: Mapping[str, object] = field(default_factory=dict)


Transform = SqlTransform | PythonTransform


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Rows to a topic. `key`, `partition` and `headers` are SQL expressions over the view's columns."""

    name: str
    view: str
    topic: str
    key: str | None = None
    format: Format = Format(Encoding.JSON)
    columns: tuple[str, ...] = ()  # what JSON, CSV and Avro contain; default: every column without a leading underscore
    partition: str | None = None
    headers: str | None = None
    partitions: int | None = None  # creates the topic with this many partitions if it does not exist
    delivery: Delivery = Delivery.EXACTLY_ONCE
    way: Way = Way.AUTO
    mode: OutputMode = OutputMode.APPEND
    transaction_timeout: float = 300.0
    staging: str | None = None  # a folder that driver and executors share, for large batches of way per-batch


@dataclass(frozen=True, slots=True)
class ParquetSink:
    name: str
    view: str
    path: str
    partition_by: tuple[str, ...] = ()

    mode = OutputMode.APPEND  # all that Spark's file sink has


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    name: str
    view: str
    rows: int = 20
    mode: OutputMode = OutputMode.APPEND


Sink = TopicSink | ParquetSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a batch starts: every `interval` (None: as soon as there is something), or once with everything there is."""

    interval: str | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class BadRecords:
    """What happens to a record whose value does not fit its source's format."""

    action: BadRecordsAction = BadRecordsAction.STOP
    topic: str | None = None  # for dead letters
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    bootstrap: str
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    checkpoint: str
    transforms: tuple[Transform, ...] = ()
    trigger: Trigger = Trigger()
    bad_records: BadRecords = BadRecords()
    # Client settings, those of security included, under librdkafka's names or those of Java's client.
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Mapping[str, str] = field(default_factory=dict)
    master: str = "local[*]"
    folder: Path = Path()  # where Python functions are looked up, and what relative paths are relative to

    def views(self) -> Iterator[str]:
        """The names that SQL and sinks may refer to, in order of definition."""
        yield from (each.name for each in self.sources)
        yield from (each.name for each in self.transforms)

    def source(self, name: str) -> Source:
        return next(each for each in self.sources if each.name == name)

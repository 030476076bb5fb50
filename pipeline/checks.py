"""Finds every mistake in a pipeline that can be found without asking Spark or the broker.

A problem names its part of the pipeline by path, so that the reader of a file can report the line.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from barnabas.pipeline.kafka_settings import problem_with
from barnabas.pipeline.model import (
    BadRecordsAction,
    Delivery,
    Encoding,
    Format,
    OutputMode,
    ParquetSink,
    Pipeline,
    PythonTransform,
    Sink,
    Source,
    SqlTransform,
    TopicSink,
    Transform,
    Way,
)
from barnabas.pipeline.module_files import file_of
from barnabas.pipeline.schema import SchemaError, parse_schema
from barnabas.pipeline.sql import problem_of, references, view_name

Path = tuple[str, ...]

_VIEW_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INTERVAL: Final = re.compile(
    r"\d+(\.\d+)?\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?|weeks?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Problem:
    path: Path
    message: str
    line_in_text: int | None = None  # in a multi-line text: the line relative to its first

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.message}" if self.path else self.message


def did_you_mean(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def problems_of(pipeline: Pipeline) -> list[Problem]:
    return [*_problems(pipeline)]


def _problems(pipeline: Pipeline) -> Iterator[Problem]:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", pipeline.name):
        yield Problem(("name",), "a pipeline's name has letters, digits, dots, dashes and underscores, at most 100")
    for address in pipeline.bootstrap.split(","):
        if not re.fullmatch(r"\s*(\[[^]]+\]|[^\s:]+):\d{1,5}\s*", address):
            yield Problem(("bootstrap",), f"{address.strip()!r} is not an address such as 127.0.0.1:9092")
    problem = problem_with(pipeline.kafka)
    if problem is not None:
        yield Problem(("security",), problem)
    yield from _names(pipeline)
    for source in pipeline.sources:
        yield from _of_source(source, ("sources", source.name))
    known = [each.name for each in pipeline.sources]
    for transform in pipeline.transforms:
        yield from _of_transform(transform, known, pipeline, ("transforms", transform.name))
        known.append(transform.name)
    if not pipeline.sources:
        yield Problem(("sources",), "a pipeline needs a source")
    elif all(source.table for source in pipeline.sources):
        yield Problem(("sources",), "every source is a table; at least one has to be a stream")
    if not pipeline.sinks:
        yield Problem(("sinks",), "a pipeline needs a sink")
    for sink in pipeline.sinks:
        yield from _of_sink(sink, known, ("sinks", sink.name))
    if pipeline.trigger.interval is not None and not _INTERVAL.fullmatch(pipeline.trigger.interval):
        yield Problem(("trigger",), f"{pipeline.trigger.interval!r} is not a time such as '5 seconds', and not 'once'")
    bad = pipeline.bad_records
    if bad.action is BadRecordsAction.DEAD_LETTER:
        yield from _topic_name(bad.topic or "", ("bad_records", "topic"))
        read = {topic for source in pipeline.sources for topic in source.topics}
        if bad.topic in read:
            yield Problem(
                ("bad_records", "topic"), f"the dead-letter topic {bad.topic!r} is one that the pipeline reads"
            )


def _names(pipeline: Pipeline) -> Iterator[Problem]:
    taken: dict[str, Path] = {}
    for room, parts in (("sources", pipeline.sources), ("transforms", pipeline.transforms)):
        for part in parts:
            path = (room, part.name)
            if not _VIEW_NAME.fullmatch(part.name):
                yield Problem(
                    path, f"{part.name!r} cannot name a view: letters, digits and underscores, no digit first"
                )
            if part.name.lower() in taken:
                yield Problem(path, f"the name {part.name!r} is taken by {'.'.join(taken[part.name.lower()])}")
            taken.setdefault(part.name.lower(), path)
    for sink in pipeline.sinks:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", sink.name):
            yield Problem(("sinks", sink.name), "a sink's name has letters, digits, dots, dashes and underscores")


def _of_source(source: Source, path: Path) -> Iterator[Problem]:
    if bool(source.topics) == (source.pattern is not None):
        yield Problem(path, "a source has either a topic (or topics) or a pattern")
    for topic in source.topics:
        yield from _topic_name(topic, (*path, "topic"))
    if source.pattern is not None:
        try:
            re.compile(source.pattern)
        except re.error as error:
            yield Problem((*path, "pattern"), f"{source.pattern!r} is not a regular expression: {error}")
    yield from _starting(source.starting, (*path, "from"))
    yield from _of_format(source.value, (*path, "value"), writes=False)
    if source.key.encoding in (Encoding.AVRO, Encoding.CSV):
        yield Problem((*path, "key"), "a key may be text, bytes or json")
    yield from _of_format(source.key, (*path, "key"), writes=False)
    if source.key.encoding is Encoding.JSON and source.key.schema is None:
        yield Problem((*path, "key"), "a JSON key needs a schema")
    if source.table and source.watermark is not None:
        yield Problem((*path, "watermark"), "a table has no watermark: it is not a stream")
    if source.table and source.starting != "earliest":
        yield Problem((*path, "from"), "a table is always read from its beginning")
    if source.watermark is not None and not _INTERVAL.fullmatch(source.watermark.delay):
        yield Problem((*path, "watermark"), f"{source.watermark.delay!r} is not a time such as '10 seconds'")


def _starting(starting: str, path: Path) -> Iterator[Problem]:
    if starting in ("earliest", "latest") or starting.isdigit():
        return
    try:
        offsets = json.loads(starting)
        good = all(
            partition.isdigit() and type(offset) is int and offset >= -2
            for partitions in offsets.values()
            for partition, offset in partitions.items()
        )
    except (ValueError, AttributeError):
        good = False
    if not good:
        hint = did_you_mean(starting, ("earliest", "latest"))
        yield Problem(path, f"{starting!r} is not earliest, latest, a time, or offsets by topic and partition{hint}")


def _of_format(format_: Format, path: Path, *, writes: bool) -> Iterator[Problem]:
    if format_.encoding is Encoding.AVRO:
        if format_.schema is None:
            yield Problem(path, "avro needs a schema (the JSON text of it)")
            return
        try:
            avro = json.loads(format_.schema)
        except ValueError as error:
            yield Problem((*path, "schema"), f"an Avro schema is JSON, and this is not: {error}")
            return
        if not (isinstance(avro, dict) and avro.get("type") == "record" and isinstance(avro.get("fields"), list)):
            yield Problem((*path, "schema"), "the Avro schema of a value is a record, with fields")
    elif format_.schema is not None and format_.encoding in (Encoding.TEXT, Encoding.BYTES):
        yield Problem((*path, "schema"), f"{format_.encoding} has no schema")
    elif format_.schema is not None and not writes:
        try:
            fields = parse_schema(format_.schema)
        except SchemaError as error:
            yield Problem((*path, "schema"), f"{error} (an example: id INT NOT NULL, name STRING)")
            return
        for each in fields:
            if each.name.startswith("_"):
                yield Problem(
                    (*path, "schema"), f"the column {each.name}: a leading underscore is for the record's own"
                )
    elif format_.encoding is Encoding.CSV and not writes:
        yield Problem(path, "csv needs a schema (an example: id INT NOT NULL, name STRING)")


def _of_transform(transform: Transform, known: list[str], pipeline: Pipeline, path: Path) -> Iterator[Problem]:
    match transform:
        case SqlTransform():
            problem = problem_of(transform.sql)
            if problem is not None:
                yield Problem((*path, "sql"), problem.message, problem.line)
                return
            lower = {each.lower() for each in known}
            for token in references(transform.sql):
                name = view_name(token)
                if name.lower() not in lower:
                    yield Problem((*path, "sql"), _unknown_view(name, known, pipeline), token.line)
        case PythonTransform():
            if not transform.inputs:
                yield Problem((*path, "inputs"), "a Python function needs the views that it is given")
            for name in transform.inputs:
                if name not in known:
                    yield Problem((*path, "inputs"), _unknown_view(name, known, pipeline))
            yield from _of_function(transform, pipeline, (*path, "python"))


def _of_function(transform: PythonTransform, pipeline: Pipeline, path: Path) -> Iterator[Problem]:
    module, colon, name = transform.function.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        yield Problem(path, f"{transform.function!r} is not of the form package.module:function")
        return
    if file_of(module, pipeline.folder) is not None:
        return
    try:
        found = module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if found and pipeline.folder.joinpath(f"{module}.py").is_file():
        yield Problem(path, f"{module}.py is hidden by a module of Python's or ours; give it another name")
    if not found:
        where = pipeline.folder.absolute()
        yield Problem(path, f"there is no module {module!r}, neither in {where} nor on Python's path")


def _of_sink(sink: Sink, known: list[str], path: Path) -> Iterator[Problem]:
    if sink.view not in known:
        yield Problem((*path, "from"), f"there is no view {sink.view!r}{did_you_mean(sink.view, known)}")
    match sink:
        case TopicSink():
            yield from _topic_name(sink.topic, (*path, "topic"))
            yield from _of_format(sink.format, (*path, "format"), writes=True)
            if sink.format.confluent_header:
                yield Problem(
                    (*path, "format"), "confluent_header is for reading: no schema registry is asked for an id"
                )
            if sink.way is not Way.AUTO and sink.delivery is Delivery.AT_LEAST_ONCE:
                yield Problem((*path, "way"), "a way applies to exactly-once; this sink is at-least-once")
            if sink.way is Way.PER_TASK and sink.mode is not OutputMode.APPEND:
                yield Problem((*path, "way"), "per-task is for streams without state, whose mode is append")
            if not 1 <= sink.transaction_timeout <= 900:
                yield Problem((*path, "transaction_timeout"), "is from 1 to 900 seconds, Kafka's own bound")
        case ParquetSink():
            if not sink.path:
                yield Problem((*path, "parquet"), "is the path of a folder")
        case _:
            pass


def _topic_name(topic: str, path: Path) -> Iterator[Problem]:
    if not _TOPIC_NAME.fullmatch(topic) or topic in (".", ".."):
        yield Problem(path, f"{topic!r} cannot name a topic: letters, digits, dots, dashes, underscores; at most 249")


def _unknown_view(name: str, known: list[str], pipeline: Pipeline) -> str:
    if name in pipeline.views():
        return f"the view {name!r} is defined further below; a transformation sees those above it"
    return f"there is no view {name!r}{did_you_mean(name, known)}"

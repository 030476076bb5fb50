"""Reads a file into a `Pipeline`, or reports every mistake in it with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import yaml

from barnabas.pipeline.checks import Path, Problem, did_you_mean, problems_of
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.file.document import Document
from barnabas.pipeline.file.fields import Fields, as_text, flattened, milliseconds
from barnabas.pipeline.model import (
    BadRecords,
    BadRecordsAction,
    ConsoleSink,
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
    Trigger,
    Watermark,
    Way,
)


@dataclass(frozen=True, slots=True)
class Located:
    line: int
    message: str


class FileError(PipelineError):
    """A file that is not a valid pipeline: every problem with its line."""

    def __init__(self, file: str, problems: list[Located]) -> None:
        self.file = file
        self.problems = problems
        super().__init__("\n".join(f"{file}:{each.line}: {each.message}" for each in problems))


def load(
    file: str | FilePath, overrides: Iterable[tuple[str, str]] = (), security: Mapping[str, str] | None = None
) -> Pipeline:
    """The pipeline of a file, with overrides (`--config`) such as ("sources.lines.topic", "other") applied.

    `security` has client settings (`--client-config`), which win over those in the file.
    """
    path = FilePath(file)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FileError(str(path), [Located(line, f"this is not UTF-8: {error.reason}")]) from None
    return parse(text, str(path), path.absolute().parent, overrides, security)


def parse(
    text: str,
    file: str,
    folder: FilePath,
    overrides: Iterable[tuple[str, str]] = (),
    security: Mapping[str, str] | None = None,
) -> Pipeline:
    document = Document(text)
    problems: list[Problem] = []
    for key, value in overrides:
        try:
            document.override(tuple(key.split(".")), yaml.safe_load(value))
        except yaml.YAMLError:
            document.override(tuple(key.split(".")), value)
    pipeline = None
    if document.value is None and not document.mistakes:
        problems.append(Problem((), "the file is empty; `barnabas pipeline init` writes an example"))
    elif document.value is not None:
        pipeline = _pipeline(Fields(document.value, (), problems), folder, security or {})
        problems += [each for each in problems_of(pipeline) if not _follows(each, problems)]
    located = [Located(line, message) for line, message in document.mistakes]
    located += [Located(document.line(_place(each.path, document), each.line_in_text), str(each)) for each in problems]
    if located or pipeline is None:
        raise FileError(file, sorted(set(located), key=lambda each: (each.line, each.message)))
    return pipeline


def _follows(problem: Problem, reported: list[Problem]) -> bool:
    """Whether it concerns a value that could not be read at all."""
    return any(
        problem.path == each.path or (len(each.path) > 2 and problem.path[: len(each.path)] == each.path)
        for each in reported
    )


def _place(path: Path, document: Document) -> Path:
    """A schema may be inside its format or beside it."""
    if path[-1:] == ("schema",) and not document.has(path):
        return (*path[:-2], "schema")
    return path


def _pipeline(fields: Fields, folder: FilePath, security: Mapping[str, str]) -> Pipeline:
    problems = fields.problems
    name = fields.text("name", "", needed=True) or ""
    checkpoint = fields.text("checkpoint", "", needed=True) or ""
    pipeline = Pipeline(
        name=name,
        bootstrap=fields.text("bootstrap", "127.0.0.1:9092") or "",
        sources=fields.parts("sources", lambda name, value, path: _source(name, value, path, problems)),
        transforms=fields.parts("transforms", lambda name, value, path: _transform(name, value, path, problems)),
        sinks=fields.parts("sinks", lambda name, value, path: _sink(name, value, path, folder, problems)),
        checkpoint=resolved(checkpoint, folder),
        trigger=_trigger(fields),
        bad_records=_bad_records(fields, problems),
        kafka={**fields.settings("security"), **fields.settings("kafka"), **security},
        spark=fields.settings("spark"),
        master=fields.text("master", "local[*]") or "local[*]",
        folder=folder,
    )
    fields.done()
    return pipeline


def _source(name: str, value: Any, path: Path, problems: list[Problem]) -> Source:
    fields = Fields({"topic": value} if isinstance(value, str) else value, path, problems)
    topics = fields.texts("topic") + fields.texts("topics")
    watermark = fields.raw("watermark")
    source = Source(
        name=name,
        topics=topics,
        pattern=fields.text("pattern"),
        starting=_starting(fields),
        value=_format(fields, "value", Format(Encoding.TEXT)),
        key=_format(fields, "key", Format(Encoding.TEXT), shared_schema=False),
        headers=fields.flag("headers"),
        watermark=_watermark(watermark, (*path, "watermark"), problems),
        table=fields.flag("table"),
        max_records_per_batch=fields.number("max_records_per_batch"),
    )
    fields.done()
    return source


def _starting(fields: Fields) -> str:
    value = fields.raw("from")
    if value is None:
        return "earliest"
    if isinstance(value, dict):
        return json.dumps(value)
    return milliseconds(value) or as_text(value)


def _format(fields: Fields, key: str, default: Format, *, shared_schema: bool = True) -> Format:
    """`value: json` with `schema:` beside it, or everything inside: `value: {format: json, schema: …}`."""
    value = fields.raw(key)
    if isinstance(value, dict):
        inner = Fields(value, (*fields.path, key), fields.problems)
        encoding = inner.choice("format", Encoding, default.encoding)
        schema = _schema(inner.raw("schema"))
        options = inner.settings("options")
        confluent = inner.flag("confluent_header")
        inner.done()
    else:
        encoding = default.encoding
        if value is not None:
            encoding = fields.one_of(as_text(value), Encoding, encoding, (key,))
        schema = _schema(fields.raw("schema")) if shared_schema else None
        options = fields.settings("options") if shared_schema else {}
        confluent = fields.flag("confluent_header") if shared_schema else False
    if schema == "infer":
        if encoding is not Encoding.JSON:
            fields.wrong((key,), "only the schema of JSON can be inferred")
        schema = None
    return Format(encoding, schema, options, confluent)


def _schema(value: Any) -> str | None:
    """DDL; or columns and types as a mapping or a list of one-entry mappings; or an Avro schema as YAML."""
    if value is None:
        return None
    if isinstance(value, dict):
        if "type" in value and isinstance(value["type"], str) and ("fields" in value or "name" in value):
            return json.dumps(value)
        return ", ".join(f"`{name}` {kind}" for name, kind in flattened(value))
    return as_text(value)


def _watermark(value: Any, path: Path, problems: list[Problem]) -> Watermark | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        return Watermark("_timestamp", as_text(value))
    fields = Fields(value, path, problems)
    watermark = Watermark(fields.text("column") or "_timestamp", fields.text("delay", "", needed=True) or "0 seconds")
    fields.done()
    return watermark


def _transform(name: str, value: Any, path: Path, problems: list[Problem]) -> Transform | None:
    if isinstance(value, str):
        return SqlTransform(name, value)
    fields = Fields(value, path, problems)
    sql, function = fields.text("sql"), fields.text("python")
    inputs = fields.texts("inputs") + fields.texts("input")
    arguments = fields.raw("arguments")
    fields.done()
    if (sql is None) == (function is None):
        fields.wrong((), "a transformation has either 'sql' or 'python'")
        return SqlTransform(name, "SELECT 1")
    if sql is not None:
        return SqlTransform(name, sql)
    if arguments is not None and not isinstance(arguments, dict):
        fields.wrong(("arguments",), "'arguments' has names and values")
        arguments = None
    return PythonTransform(name, function or "", inputs, arguments or {})


def _sink(name: str, value: Any, path: Path, folder: FilePath, problems: list[Problem]) -> Sink | None:
    fields = Fields(value, path, problems)
    kinds = [kind for kind in ("topic", "parquet", "console") if fields.has(kind)]
    view = fields.text("from", "", needed=True) or ""
    if len(kinds) != 1:
        known = ("topic", "parquet", "console")
        guess = next(filter(None, (did_you_mean(key, known) for key in fields.names())), "")
        fields.wrong((), f"a sink is one of 'topic: NAME', 'parquet: PATH' and 'console: true'{guess}")
        return None
    sink: Sink
    if kinds == ["parquet"]:
        sink = ParquetSink(name, view, resolved(fields.text("parquet") or "", folder), fields.texts("partition_by"))
    elif kinds == ["console"]:
        fields.flag("console")
        sink = ConsoleSink(
            name, view, fields.number("rows", 20) or 20, fields.choice("mode", OutputMode, OutputMode.APPEND)
        )
    else:
        staging = fields.text("staging")
        sink = TopicSink(
            name=name,
            view=view,
            topic=fields.text("topic") or "",
            key=fields.text("key"),
            format=_format(fields, "format", Format(Encoding.JSON)),
            columns=fields.texts("columns"),
            partition=fields.text("partition"),
            headers=fields.text("headers"),
            partitions=fields.number("partitions"),
            delivery=fields.choice("delivery", Delivery, Delivery.EXACTLY_ONCE),
            way=fields.choice("way", Way, Way.AUTO),
            mode=fields.choice("mode", OutputMode, OutputMode.APPEND),
            transaction_timeout=fields.seconds("transaction_timeout", 300.0),
            staging=resolved(staging, folder) if staging else None,
        )
    fields.done()
    return sink


def _trigger(fields: Fields) -> Trigger:
    value = fields.text("trigger")
    return Trigger(once=True) if value == "once" else Trigger(interval=value)


def _bad_records(fields: Fields, problems: list[Problem]) -> BadRecords:
    value = fields.raw("bad_records")
    if value is None:
        return BadRecords()
    if isinstance(value, dict):
        inner = Fields(value, ("bad_records",), problems)
        made = BadRecords(
            BadRecordsAction.DEAD_LETTER, inner.text("topic", "", needed=True), inner.number("partitions")
        )
        inner.done()
        return made
    known = (BadRecordsAction.STOP, BadRecordsAction.SKIP)
    if as_text(value) not in known:
        hint = did_you_mean(as_text(value), known)
        fields.wrong(("bad_records",), f"{value!r} is not 'stop', 'skip' or 'topic: NAME' (for dead letters){hint}")
        return BadRecords()
    return BadRecords(BadRecordsAction(as_text(value)))


def resolved(path: str, folder: FilePath) -> str:
    """A plain path is relative to the file's folder; one with a scheme (hdfs:, s3a:) is left to Spark."""
    if not path or "://" in path or path.startswith("file:"):
        return path
    return str(folder / path)

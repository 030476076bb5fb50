"""Turns a view's columns into key, value, headers and partition for a topic, with the source's position."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import BinaryType, StringType, StructType

from barnabas.pipeline.checks import did_you_mean
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.frames.views import sql_sentence
from barnabas.pipeline.model import POSITION_COLUMNS, Encoding, TopicSink

HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def encoded(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """The columns of Spark's own Kafka sink, and after them those of POSITION_COLUMNS that the view has."""
    place = f"sinks.{sink.name}"
    columns = [_value(frame, sink).alias("value")]
    columns.insert(0, _bytes(frame, sink.key, f"{place}.key").alias("key"))
    if sink.headers is not None:
        columns.append(_expression(frame, sink.headers, f"{place}.headers").cast(HEADERS_TYPE).alias("headers"))
    if sink.partition is not None:
        columns.append(_expression(frame, sink.partition, f"{place}.partition").cast("int").alias("partition"))
    columns += [F.col(name) for name in POSITION_COLUMNS if name in frame.columns]
    try:
        return frame.select(*columns)
    except AnalysisException as error:
        raise PipelineError(f"{place}: {sql_sentence(error)}") from error


def has_position(frame: DataFrame) -> bool:
    return all(name in frame.columns for name in POSITION_COLUMNS)


def _value(frame: DataFrame, sink: TopicSink) -> Column:
    place = f"sinks.{sink.name}"
    names = list(sink.columns) or [name for name in frame.columns if not name.startswith("_")]
    for name in names:
        if name not in frame.columns:
            hint = did_you_mean(name, frame.columns)
            raise PipelineError(f"{place}.columns: the view {sink.view!r} has no column {name!r}{hint}")
    encoding = sink.format.encoding
    if encoding in (Encoding.TEXT, Encoding.BYTES):
        name = names[0] if len(names) == 1 else "value"
        if name not in names:
            raise PipelineError(
                f"{place}: {encoding} needs one column; the view {sink.view!r} has {', '.join(names)}. Choose it with "
                "`columns: [NAME]`, or name it `value`"
            )
        return _bytes(frame, f"`{name}`", place)
    if not names:
        raise PipelineError(
            f"{place}: the view {sink.view!r} has no column to write (those with _ are the record's own)"
        )
    row = F.struct(*[F.col(f"`{name}`") for name in names])
    if encoding is Encoding.AVRO:
        return to_avro(row, sink.format.schema or "")
    if encoding is Encoding.CSV:
        return F.to_csv(row, sink.format.options).cast("binary")
    return F.to_json(row, sink.format.options).cast("binary")


def _bytes(frame: DataFrame, expression: str | None, place: str) -> Column:
    """Bytes as they are, text as UTF-8, structs as JSON, anything else as the text that SQL would show."""
    if expression is None:
        return F.lit(None).cast("binary")
    column = _expression(frame, expression, place)
    kind = frame.select(column).schema.fields[0].dataType
    if isinstance(kind, BinaryType):
        return column
    if isinstance(kind, StructType):
        return F.to_json(column).cast("binary")
    return column.cast("binary") if isinstance(kind, StringType) else column.cast("string").cast("binary")


def _expression(frame: DataFrame, expression: str, place: str) -> Column:
    try:
        column = F.expr(expression)
        frame.select(column)
    except (AnalysisException, ParseException) as error:
        raise PipelineError(f"{place}: {sql_sentence(error)}") from error
    return column

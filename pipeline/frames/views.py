"""All views of a pipeline in their own session: sources first, then each transformation on top of those above it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.frames.decoding import Decoded, decode, good
from barnabas.pipeline.frames.functions import applied
from barnabas.pipeline.frames.modules import imported_from
from barnabas.pipeline.frames.sources import inferred_schema, stream, table
from barnabas.pipeline.model import (
    BadRecordsAction,
    Encoding,
    Pipeline,
    PythonTransform,
    Source,
    SqlTransform,
    Transform,
)


@dataclass
class Views:
    frames: dict[str, DataFrame] = field(default_factory=dict)
    decoded: dict[str, Decoded] = field(default_factory=dict)  # of the streaming sources, for dead letters
    schemas: dict[str, str] = field(default_factory=dict)  # what was inferred


def build(spark: SparkSession, pipeline: Pipeline, known_schemas: Mapping[str, str]) -> Views:
    """`known_schemas` were inferred by an earlier run: a pipeline keeps the schema that it started with."""
    views = Views(schemas=dict(known_schemas))
    for source in pipeline.sources:
        frame = _source(spark, pipeline, source, views)
        views.frames[source.name] = frame
        frame.createOrReplaceTempView(source.name)
    in_python = any(isinstance(each, PythonTransform) for each in pipeline.transforms)
    with imported_from(pipeline.folder) if in_python else nullcontext():
        for transform in pipeline.transforms:
            frame = _transformed(spark, transform, views)
            views.frames[transform.name] = frame
            frame.createOrReplaceTempView(transform.name)
    return views


def _transformed(spark: SparkSession, transform: Transform, views: Views) -> DataFrame:
    match transform:
        case SqlTransform():
            try:
                return spark.sql(transform.sql)
            except (AnalysisException, ParseException) as error:
                raise PipelineError(f"transforms.{transform.name}: {sql_sentence(error)}") from error
        case PythonTransform():
            return applied(transform, [views.frames[name] for name in transform.inputs])


def _source(spark: SparkSession, pipeline: Pipeline, source: Source, views: Views) -> DataFrame:
    schema = source.value.schema
    if source.value.encoding is Encoding.JSON and schema is None:
        if source.name not in views.schemas:
            views.schemas[source.name] = inferred_schema(spark, pipeline, source)
        schema = views.schemas[source.name]
    raw = table(spark, pipeline, source) if source.table else stream(spark, pipeline, source)
    decoded = decode(raw, source, schema)
    action = pipeline.bad_records.action
    if source.table and action is BadRecordsAction.DEAD_LETTER:
        action = BadRecordsAction.SKIP  # a table is read again and again; its bad records would be reported every time
    elif not source.table:
        views.decoded[source.name] = decoded
    frame = good(decoded, action, source)
    if source.watermark is not None:
        try:
            frame = frame.withWatermark(source.watermark.column, source.watermark.delay)
        except AnalysisException as error:
            raise PipelineError(f"sources.{source.name}.watermark: {sql_sentence(error)}") from error
    return frame


def sql_sentence(error: AnalysisException | ParseException) -> str:
    """Spark's own sentence, without its error class, the query and the plan."""
    text = (error.getMessage() or str(error)).strip()
    sentence = text.split("\n")[0]
    if sentence.startswith("[") and "] " in sentence:
        sentence = sentence.split("] ", 1)[1]
    return sentence.split(" SQLSTATE:")[0]

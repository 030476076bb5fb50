"""Topics as DataFrames: streams, and tables (the newest value of each key)."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.pipeline.connector import KAFKA_OPTIONS
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.kafka_settings import for_java
from barnabas.pipeline.model import Pipeline, Source

_SAMPLED = 1000  # records from which a schema is inferred


def stream(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    reader = spark.readStream.format("kafka").options(**_options(pipeline, source))
    if source.starting.isdigit():
        # Spark's connector fails if a partition has no record that new; this makes it start at the end.
        reader = reader.option("startingTimestamp", source.starting)
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
    else:
        reader = reader.option("startingOffsets", source.starting)
    if source.max_records_per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.max_records_per_batch)
    return reader.load()


def table(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    """The connector's columns, one row per key: read from beginning to end for every batch.

    Within a partition the offset decides which is newest. A key is in two partitions only if the topic has grown, and
    then the timestamp decides.
    """
    whole = _batch(spark, pipeline, source)
    columns = F.struct(*[F.col(name) for name in whole.columns])
    by_partition = whole.groupBy("key", "topic", "partition").agg(F.max_by(columns, F.col("offset")).alias("newest"))
    newest = by_partition.groupBy("key").agg(F.max_by(F.col("newest"), F.col("newest.timestamp")).alias("newest"))
    return newest.select("newest.*").filter("key IS NOT NULL AND value IS NOT NULL")  # no value: a deleted key


def inferred_schema(spark: SparkSession, pipeline: Pipeline, source: Source) -> str:
    """The schema of the first JSON records of a source, as DDL."""
    sample = _batch(spark, pipeline, source).filter("value IS NOT NULL").select(F.col("value").cast("string"))
    texts = [row[0] for row in sample.take(_SAMPLED)]
    readable = [text for text in texts if _is_object(text)]
    if not readable:
        raise PipelineError(
            f"the schema of the source {source.name!r} cannot be inferred: "
            + ("its topic has no record that is a JSON object" if texts else "its topic is empty")
            + f"; write one into the file (sources.{source.name}.schema: id INT, name STRING)"
        )
    frame = spark.read.json(spark.sparkContext.parallelize(readable, 1))
    return str(frame._jdf.schema().toDDL())


def _batch(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    reader = spark.read.format("kafka").options(**_options(pipeline, source))
    return reader.option("startingOffsets", "earliest").option("endingOffsets", "latest").load()


def _options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    where = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    return {
        **KAFKA_OPTIONS,
        **for_java(pipeline.bootstrap, pipeline.kafka),
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        **where,
    }


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False

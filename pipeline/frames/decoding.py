"""Decodes the connector's bytes into columns, and finds the records that do not fit.

A decoded frame has the columns of the value, then `_key`, `_topic`, `_partition`, `_offset`, `_timestamp` (and
`_headers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from barnabas.pipeline.model import BadRecordsAction, Encoding, Format, Source
from barnabas.pipeline.schema import bytes_of_nulls, parse_schema

_CORRUPT = "_corrupt"
# The prefix by which our message is found again inside Spark's own errors.
STOPPED = "barnabas stopped at a bad record:"
SKIPPED = "skipped-"
"""The names of metrics that count skipped records begin with this; then comes the source."""


@dataclass(frozen=True)
class Decoded:
    """All records of a source with the parsed value beside the raw one, and the condition for the bad ones."""

    frame: DataFrame
    columns: list[Column]
    bad: Column | None  # None: no record of this format can be bad


def decode(raw: DataFrame, source: Source, schema: str | None) -> Decoded:
    """`schema` is the format's own or the one that was inferred for it."""
    value = source.value
    fields: list[Column] = []
    bad: Column | None = None
    match value.encoding:
        case Encoding.BYTES:
            fields = [F.col("value")]
        case Encoding.TEXT:
            fields = [F.col("value").cast("string").alias("value")]
        case Encoding.AVRO:
            content = F.expr("substring(value, 6)") if value.confluent_header else F.col("value")
            parsed = from_avro(content, value.schema or "", {"mode": "PERMISSIVE", **value.options})
            raw = raw.withColumn("_parsed", parsed)
            # An unreadable value becomes a row of nulls, and so does a record whose fields are all null.
            names = raw.select("_parsed.*").columns
            nothing = reduce(Column.__and__, (F.col(f"_parsed.`{name}`").isNull() for name in names), F.lit(True))
            of_nulls = bytes_of_nulls(value.schema or "")
            if of_nulls is not None:
                nothing = nothing & (content != F.lit(of_nulls))
            bad = F.col("value").isNotNull() & nothing
            fields = [F.col(f"_parsed.`{name}`").alias(name) for name in names]
        case _:
            raw = raw.withColumn("_parsed", _parsed(value, schema or ""))
            # An empty value is not a row; a value that is there but unreadable is kept.
            unread = F.col("_parsed").isNull() | F.col(f"_parsed.{_CORRUPT}").isNotNull()
            bad = F.col("value").isNotNull() & unread
            for each in parse_schema(schema or ""):
                fields.append(F.col(f"_parsed.`{each.name}`").alias(each.name))
                if not each.nullable:
                    bad = bad | F.col(f"_parsed.`{each.name}`").isNull()
    own = [
        _key(source.key).alias("_key"),
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    ]
    if source.headers:
        own.append(F.col("headers").alias("_headers"))
    return Decoded(raw, fields + own, bad)


def good(decoded: Decoded, action: BadRecordsAction, source: Source) -> DataFrame:
    """The view of a source: the records that fit, and what happens to the others."""
    frame = decoded.frame
    if decoded.bad is not None:
        # NULL in a comparison must not drop a record.
        bad = F.coalesce(decoded.bad, F.lit(False))
        if action is BadRecordsAction.STOP:
            place = F.concat(
                F.lit(f"{STOPPED} source {source.name}, topic "),
                F.col("topic"),
                F.lit(", partition "),
                F.col("partition").cast("string"),
                F.lit(", offset "),
                F.col("offset").cast("string"),
                F.lit(": "),
                F.coalesce(F.substring(F.col("value").cast("string"), 1, 200), F.lit("no value")),
            )
            frame = frame.filter(F.when(bad, F.raise_error(place).cast("boolean")).otherwise(F.lit(True)))
        else:
            if frame.isStreaming and action is BadRecordsAction.SKIP:  # a table would be counted again in every batch
                frame = frame.observe(f"{SKIPPED}{source.name}", F.count_if(bad).alias("records"))
            frame = frame.filter(~bad)
    return frame.select(*decoded.columns)


def _parsed(value: Format, schema: str) -> Column:
    """Every column may be null here: NOT NULL is checked separately, so that the reason can be given."""
    columns = ", ".join(f"`{each.name}` {each.type}" for each in parse_schema(schema))
    with_corrupt = f"{columns}, {_CORRUPT} STRING"
    options = {"mode": "PERMISSIVE", **value.options, "columnNameOfCorruptRecord": _CORRUPT}
    text = F.col("value").cast("string")
    if value.encoding is Encoding.CSV:
        return F.from_csv(text, F.lit(with_corrupt), options)
    return F.from_json(text, with_corrupt, options)


def _key(key: Format) -> Column:
    match key.encoding:
        case Encoding.BYTES:
            return F.col("key")
        case Encoding.JSON:
            return F.from_json(F.col("key").cast("string"), key.schema or "")
        case _:
            return F.col("key").cast("string")

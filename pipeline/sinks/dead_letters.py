"""Writes bad records unchanged to their own topic, with their position and the reason in headers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from barnabas.pipeline.frames.decoding import Decoded
from barnabas.pipeline.model import Encoding, Source
from barnabas.pipeline.schema import Field, misfit, parse_schema

_COLUMNS: Final = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
    "_topic STRING, _partition INT, _offset LONG"
)


def dead_letters(decoded: Decoded, pipeline: str, source: Source, schema: str | None) -> DataFrame | None:
    """The bad records of a source, ready for a topic; None if no record of its format can be bad."""
    if decoded.bad is None:
        return None
    bad = decoded.frame.filter(F.coalesce(decoded.bad, F.lit(False)))
    raw = bad.select(
        "key",
        "value",
        "headers",
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
    )
    return raw.mapInArrow(partial(_explained, pipeline, source.name, source.value.encoding.value, schema), _COLUMNS)


def _explained(
    pipeline: str, source: str, encoding: str, schema: str | None, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    fields = parse_schema(schema) if encoding == Encoding.JSON and schema else ()
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            why = reason(row["value"], Encoding(encoding), fields, schema)
            row["headers"] = [
                *(row["headers"] or []),
                _header("barnabas.reason", why),
                _header("barnabas.pipeline", pipeline),
                _header("barnabas.source", source),
                _header("barnabas.topic", row["_topic"]),
                _header("barnabas.partition", row["_partition"]),
                _header("barnabas.offset", row["_offset"]),
            ]
        yield pyarrow.RecordBatch.from_pylist(rows, schema=batch.schema)


def reason(value: bytes | None, encoding: Encoding, fields: tuple[Field, ...], schema: str | None) -> str:
    if value is None:
        return "the record has no value, and the schema has columns that are NOT NULL"
    if encoding is not Encoding.JSON:
        return f"the value does not fit the {encoding} schema {schema}"
    try:
        decoded = json.loads(value)
    except ValueError as error:
        return f"the value is not JSON: {error}"
    return misfit(decoded, fields) or f"the value does not fit the schema {schema}"


def _header(key: str, value: object) -> dict[str, object]:
    return {"key": key, "value": str(value).encode()}

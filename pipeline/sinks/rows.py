"""Rows from Arrow batches, in the form in which they are produced."""

from __future__ import annotations

from typing import Any

import pyarrow

from barnabas.pipeline.sinks.transactions import Headers

Record = tuple[bytes | None, bytes | None, Headers, int | None]


def records(batch: pyarrow.RecordBatch, start: int = 0, stop: int | None = None) -> list[Record]:
    part = batch.slice(start, None if stop is None else stop - start)
    names = part.schema.names
    keys = part.column("key").to_pylist()
    values = part.column("value").to_pylist()
    headers = part.column("headers").to_pylist() if "headers" in names else None
    partitions = part.column("partition").to_pylist() if "partition" in names else None
    if headers is None and partitions is None:
        return [(key, value, None, None) for key, value in zip(keys, values, strict=True)]
    count = len(keys)
    return list(
        zip(
            keys,
            values,
            [_headers(each) for each in headers] if headers is not None else [None] * count,
            partitions if partitions is not None else [None] * count,
            strict=True,
        )
    )


def _headers(pairs: list[dict[str, Any]] | None) -> Headers:
    return [(pair["key"], pair["value"]) for pair in pairs] if pairs else None

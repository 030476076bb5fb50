"""Chunks of batches as Arrow columns, with the names and types that Spark's Kafka connector gives them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.pipeline.segments.batches import Chunk
from barnabas.pipeline.segments.columns import BatchHeaders, Bytes, Fields, Ints
from barnabas.pipeline.segments.native import decode, decode_headers, gather
from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    read_header,
)
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.protocol.records.record import parse_records

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}


class Decoded:
    """The records of some batches of a chunk, from which columns are built on request."""

    def __init__(self, data: Bytes, fields: Fields, headers: BatchHeaders, topic: str, partition: int) -> None:
        self._data = data
        self._fields = fields
        self._headers = headers
        self._topic = topic
        self._partition = partition

    def __len__(self) -> int:
        return len(self._fields.offset)

    def between(self, start_offset: int, end_offset: int) -> "Decoded":
        """Only the records with start_offset <= offset < end_offset."""
        offset = self._fields.offset
        wanted = (offset >= start_offset) & (offset < end_offset)
        if wanted.all():
            return self
        fields = Fields(*(column[wanted] for column in self._fields))
        return Decoded(self._data, fields, self._headers, self._topic, self._partition)

    def to_arrow(self, columns: Sequence[str]) -> pa.RecordBatch:
        arrays = [_COLUMNS[name](self) for name in columns]
        schema = pa.schema([(name, TYPES[name]) for name in columns])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def key(self) -> pa.Array:
        return _stretches(pa.binary(), self._data, self._fields.key_start, self._fields.key_length)

    def value(self) -> pa.Array:
        return _stretches(pa.binary(), self._data, self._fields.value_start, self._fields.value_length)

    def topic(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._topic, pa.string()), len(self))

    def partition(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._partition, pa.int32()), len(self))

    def offset(self) -> pa.Array:
        return pa.array(self._fields.offset)

    def timestamp(self) -> pa.Array:
        return pa.array(self._fields.timestamp * 1000).view(TYPES["timestamp"])

    def timestamp_type(self) -> pa.Array:
        of_batch = ((self._headers.attributes & LOG_APPEND_TIME_FLAG) != 0).astype(np.int32)
        return pa.array(of_batch[self._fields.batch])

    def headers(self) -> pa.Array:
        """Null where there are none, as the connector has it."""
        count = self._fields.header_count
        key_start, key_length, value_start, value_length = decode_headers(self._data, self._fields)
        keys = _stretches(pa.string(), self._data, key_start, key_length)
        values = _stretches(pa.binary(), self._data, value_start, value_length)
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptRecords(f"a header's key is not UTF-8: {error}") from None
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
        offsets = np.zeros(len(count) + 1, dtype=np.int32)
        np.cumsum(count, out=offsets[1:])
        buffers = [_validity(count > 0), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(HEADERS, len(count), buffers, children=[pairs])


_COLUMNS: Final[dict[str, Callable[[Decoded], Any]]] = {
    "key": Decoded.key,
    "value": Decoded.value,
    "topic": Decoded.topic,
    "partition": Decoded.partition,
    "offset": Decoded.offset,
    "timestamp": Decoded.timestamp,
    "timestampType": Decoded.timestamp_type,
    "headers": Decoded.headers,
}


def decode_chunk(chunk: Chunk, numbers: Ints, topic: str, partition: int) -> Decoded:
    """The records of the batches of a chunk that have these numbers, compressed or not."""
    headers = BatchHeaders(*(column[numbers] for column in chunk.headers))
    data = chunk.data
    start = headers.position + HEADER_SIZE
    end = headers.position + headers.size
    if (headers.attributes & COMPRESSION_MASK).any():
        data, start, end = _decompressed(data, start, end, headers)
    fields, bad = decode(data, start, end, headers)
    if bad >= 0:
        _explain(chunk, int(headers.position[bad]), data[int(start[bad]) : int(end[bad])])
    return Decoded(data, fields, headers, topic, partition)


def _decompressed(data: Bytes, start: Ints, end: Ints, headers: BatchHeaders) -> tuple[Bytes, Ints, Ints]:
    view = data.data
    parts = [
        decompress(int(attributes) & COMPRESSION_MASK, view[first:last])
        for attributes, first, last in zip(headers.attributes, start.tolist(), end.tolist(), strict=True)
    ]
    stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), stops[:-1]])
    # Writable bytes, as a chunk's are: for read-only ones numba would compile everything once more.
    return np.frombuffer(bytearray().join(parts), dtype=np.uint8), starts, stops


def _explain(chunk: Chunk, position: int, records: Bytes) -> None:
    """Raise the slow decoder's error for a batch that the fast one could not read."""
    for _ in parse_records(bytes(records), read_header(chunk.data.data, position)):
        pass
    raise CorruptRecords("a batch does not decode")


def _stretches(kind: Any, data: Bytes, start: Ints, length: Ints) -> pa.Array:
    offsets, gathered = gather(data, start, length)
    buffers = [_validity(length >= 0), pa.py_buffer(offsets), pa.py_buffer(gathered)]
    return pa.Array.from_buffers(kind, len(start), buffers)


def _validity(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))

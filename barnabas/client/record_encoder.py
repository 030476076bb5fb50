"""Records to send, by columns, and their encoding.

barnabas.protocol.records writes any record, one by one. Most batches here share one timestamp and one set of headers,
so that only lengths, offsets and the data itself differ from record to record. Those are encoded fast: short numbers
are encoded once and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from barnabas.protocol.records.record import Headers, write_record, write_varint

T = TypeVar("T")

_NO_ATTRIBUTES_NO_DELTA: Final = b"\x00\x00"
_NULL: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Records:
    """Records by columns. A column that is None stands for: no keys, no headers, sent now, any partition."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None
    timestamps: Sequence[int | None] | None = None
    partitions: Sequence[int | None] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Sequence[int]) -> Records:
        """Some of the records, by their numbers."""

        def of(column: Sequence[T]) -> list[T]:
            return [column[row] for row in rows]

        return Records(
            of(self.values),
            self.keys and of(self.keys),
            self.headers and of(self.headers),
            self.timestamps and of(self.timestamps),
            self.partitions and of(self.partitions),
        )


class Encoded(NamedTuple):
    data: bytes | bytearray
    base_timestamp: int
    max_timestamp: int


def encode(records: Records, headers: Headers, now_ms: int) -> Encoded:
    """The records of a batch. `headers` come before each record's own; `now_ms` is for records without a timestamp."""
    none = [None] * len(records)
    keys = records.keys or none
    if records.headers is None and records.timestamps is None:
        return Encoded(encode_alike(keys, records.values, encode_headers(headers)), now_ms, now_ms)
    timestamps = [now_ms if each is None else each for each in records.timestamps or none]
    base = timestamps[0]
    out = bytearray()
    columns = zip(timestamps, keys, records.values, records.headers or none, strict=True)
    for number, (timestamp, key, value, own) in enumerate(columns):
        write_record(out, number, timestamp - base, key, value, (*headers, *(own or ())))
    return Encoded(out, base, max(timestamps))


class _Varints(dict[int, bytes]):
    def __missing__(self, number: int) -> bytes:
        out = bytearray()
        write_varint(out, number)
        self[number] = encoded = bytes(out)
        return encoded


_VARINTS: Final = _Varints()


def encode_headers(headers: Headers) -> bytes:
    out = bytearray()
    write_varint(out, len(headers))
    for name, value in headers:
        encoded = name.encode()
        write_varint(out, len(encoded))
        out += encoded
        write_varint(out, -1 if value is None else len(value))
        out += value or b""
    return bytes(out)


def encode_alike(keys: Iterable[bytes | None], values: Iterable[bytes | None], headers: bytes) -> bytes:
    """Records of one timestamp with the same headers, which come from encode_headers."""
    varints = _VARINTS
    parts: list[bytes] = []
    add = parts.extend
    fixed = len(_NO_ATTRIBUTES_NO_DELTA) + len(headers)
    for number, (key, value) in enumerate(zip(keys, values, strict=True)):
        offset_delta = varints[number]
        key_field = _NULL if key is None else varints[len(key)] + key
        if value is None:
            length = _NULL
            value = b""
        else:
            length = varints[len(value)]
        size = fixed + len(offset_delta) + len(key_field) + len(length) + len(value)
        add((varints[size], _NO_ATTRIBUTES_NO_DELTA, offset_delta, key_field, length, value, headers))
    return b"".join(parts)

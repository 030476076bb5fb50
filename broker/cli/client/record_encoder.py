"""Encoding many records of one moment, fast.

protocol.records writes any record, one by one. Here all records of a batch share their timestamp and their headers, so
that only lengths, offsets and the data itself change from one to the next; short numbers are encoded once and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocol.records.record import Headers, write_varint

_NO_ATTRIBUTES_NO_DELAY: Final = b"\x00\x00"
_NULL: Final = b"\x01"


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


def encode_records(keys: Iterable[bytes | None], values: Iterable[bytes | None], headers: bytes) -> bytes:
    """The records of a batch, up to the shorter of `keys` and `values`. `headers` comes from encode_headers."""
    varints = _VARINTS
    parts: list[bytes] = []
    add = parts.extend
    fixed = len(_NO_ATTRIBUTES_NO_DELAY) + len(headers)
    for number, (key, value) in enumerate(zip(keys, values, strict=False)):
        offset_delta = varints[number]
        key_field = _NULL if key is None else varints[len(key)] + key
        if value is None:
            length = _NULL
            value = b""
        else:
            length = varints[len(value)]
        size = fixed + len(offset_delta) + len(key_field) + len(length) + len(value)
        add((varints[size], _NO_ATTRIBUTES_NO_DELAY, offset_delta, key_field, length, value, headers))
    return b"".join(parts)

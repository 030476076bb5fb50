"""Finds keys and records in the bytes of a batch.

These loops run once or twice per compacted record, so they decode the few bytes they need inline.
barnabas.protocol.records.record describes the format. Overlapping records may yield nonsense, but that is always
detected: the last record must end where the batch does.
"""

from typing import NamedTuple

from barnabas.protocol.records.errors import CorruptRecords
from barnabas.protocol.records.record import int64, read_varint, write_varint

# The zigzag varint of -1, which as a length means null.
_NULL = 1


class ScannedKeys(NamedTuple):
    """One key and one offset per record, in order."""

    keys: list[bytes | None]
    offsets: list[int]
    # The indexes of records without a value.
    tombstones: list[int]


def scan_keys(data: bytes, position: int, limit: int, count: int, base_offset: int) -> ScannedKeys:
    """The keys of `count` records that fill `data` from `position` to `limit`."""
    keys: list[bytes | None] = []
    offsets: list[int] = []
    tombstones: list[int] = []
    try:
        for _ in range(count):
            # The length of the record, followed by one byte of attributes.
            byte = data[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2
            else:
                second = data[position + 1]
                if second < 0x80:
                    end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
                    position += 3
                else:
                    length, position = read_varint(data, position)
                    end = position + length
                    position += 1
            # The timestamp delta, skipped.
            while data[position] >= 0x80:
                position += 1
            # The offset delta.
            byte = data[position + 1]
            if byte < 0x80:
                offsets.append(base_offset + (byte >> 1))
                position += 2
            else:
                second = data[position + 2]
                if second < 0x80:
                    offsets.append(base_offset + ((byte & 0x7F | second << 7) >> 1))
                    position += 3
                else:
                    delta, position = read_varint(data, position + 1)
                    offsets.append(base_offset + delta)
            # The length of the key, and the key.
            size = data[position]
            if size < 0x80:
                position += 1
                if size & 1:
                    keys.append(None)
                else:
                    start = position
                    position += size >> 1
                    keys.append(data[start:position])
            else:
                size, position = read_varint(data, position)
                if size < 0:
                    keys.append(None)
                else:
                    keys.append(data[position : position + size])
                    position += size
            if data[position] == _NULL:
                tombstones.append(len(keys) - 1)
            if position >= end:
                raise CorruptRecords("a key is longer than its record")
            position = end
    except IndexError:
        raise CorruptRecords("a record is cut short") from None
    _check_end(position, limit)
    return ScannedKeys(keys, offsets, tombstones)


def record_bounds(data: bytes, position: int, limit: int, count: int) -> list[int]:
    """Where each record begins, and where the last one ends."""
    bounds = []
    try:
        for _ in range(count):
            bounds.append(position)
            byte = data[position]
            if byte < 0x80:
                position += 1 + (byte >> 1)
            else:
                second = data[position + 1]
                if second < 0x80:
                    position += 2 + ((byte & 0x7F | second << 7) >> 1)
                else:
                    length, position = read_varint(data, position)
                    if length < 0:
                        raise CorruptRecords(f"a record of {length} bytes")
                    position += length
    except IndexError:
        raise CorruptRecords("a record is cut short") from None
    _check_end(position, limit)
    bounds.append(position)
    return bounds


def _check_end(position: int, limit: int) -> None:
    if position != limit:
        raise CorruptRecords(f"the last record ends at byte {position} instead of {limit}")


def timestamp_delta(data: bytes, start: int) -> int:
    """The timestamp delta of the record that begins at `start`."""
    while data[start] >= 0x80:
        start += 1
    return read_varint(data, start + 2)[0]


def shift_timestamp(data: bytes, start: int, end: int, shift: int) -> bytearray:
    """The record between `start` and `end`, with `shift` added to its timestamp delta."""
    _, position = read_varint(data, start)
    delta, after = read_varint(data, position + 1)
    body = bytearray(data[position : position + 1])
    write_varint(body, int64(delta + shift))
    body += data[after:end]
    record = bytearray()
    write_varint(record, len(body))
    record += body
    return record

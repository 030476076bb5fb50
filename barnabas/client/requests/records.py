"""Batches to produce, whole or damaged, and what was fetched."""

from __future__ import annotations

import struct
import time
from typing import Any

from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header, seal
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.record import read_records


def batch(*values: bytes, timestamp: int | None = None, key: bytes | None = b"key", **fields: Any) -> bytes:
    """A batch as a producer sends it, one record for each value. Its timestamp is now by default, because a broker may
    delete what is old."""
    when = int(time.time() * 1000) if timestamp is None else timestamp
    return bytes(build_batch([NewRecord(when, key, value) for value in values or (b"value",)], **fields))


def patched(data: bytes, position: int, layout: str, value: int, *, sealed: bool = True) -> bytes:
    """A batch with another value in its header. Its checksum is right unless `sealed` is False."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    if sealed:
        seal(memoryview(changed))
    return bytes(changed)


def read_batches(records: Any) -> list[tuple[BatchHeader, memoryview]]:
    """The complete batches of what was fetched, with their headers. A last one that is cut off is left out."""
    data = memoryview(records or b"")
    found = []
    position = 0
    while position + HEADER_SIZE <= len(data):
        header = read_header(data, position)
        if position + header.size > len(data):
            break
        found.append((header, data[position : position + header.size]))
        position += header.size
    return found


def read_values(records: Any) -> list[bytes | None]:
    """The values of all records but those of control batches."""
    return [
        None if record.value is None else bytes(record.value)
        for header, data in read_batches(records)
        if not header.is_control
        for record in read_records(data, header)
    ]

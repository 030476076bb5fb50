"""Records as the page shows them: decoded from batches, cut to a size that can be looked at, and never trusted.

Pure, and meant for a thread: a batch of a few bytes may decompress to many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.printable import printable_lines
from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import read_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.protocol.records.record import Record, read_records

Json = dict[str, Any]

# Of a key, a value or a header's value, so much is shown in a list, and so much when one record is looked at.
SHORT: Final = 4 * 1024
LONG: Final = 1024 * 1024
# A batch that is larger than this when it is decompressed is not looked into.
_LARGEST_BATCH: Final = 64 * 1024 * 1024
FEW_HEADERS: Final = 50
MOST_HEADERS: Final = 5000


class Query:
    """Which records are wanted: those with this text in their key, their value or a header."""

    def __init__(self, text: str = "", longest: int = SHORT, most_headers: int = FEW_HEADERS) -> None:
        self._text = text.encode().lower()  # of ASCII letters only, as `_has` does
        self.longest = longest
        self.most_headers = most_headers

    def matches(self, record: Record) -> bool:
        text = self._text
        if not text:
            return True
        if _has(record.key, text) or _has(record.value, text):
            return True
        return any(text in name.encode().lower() or _has(value, text) for name, value in record.headers)


def _has(data: bytes | None, text: bytes) -> bool:
    return data is not None and text in data.lower()


def decoded(data: bytes, partition: int, first: int, end: int, query: Query) -> tuple[list[Json], int, int]:
    """The wanted records of [first, end), how many were looked at, and the offset after the last complete batch."""
    found: list[Json] = []
    looked_at = 0
    next_offset = first
    for header, batch in _batches(data):
        next_offset = header.next_offset
        if header.base_offset >= end:
            break
        try:
            for shown in _shown(header, batch, partition, first, end, query):
                looked_at += 1
                if shown is not None:
                    found.append(shown)
        except RecordsError as error:
            looked_at += 1
            found.append(
                {
                    "partition": partition,
                    "offset": header.base_offset,
                    "timestamp": header.base_timestamp,
                    "error": f"this batch cannot be read: {error}",
                    "batch": _batch(header),
                }
            )
    return found, looked_at, next_offset


def whole(data: bytes, offset: int) -> Record | None:
    """One record as it is. None if these batches do not have it, or it is not a client's."""
    for header, batch in _batches(data):
        if header.base_offset <= offset < header.next_offset and not header.is_control:
            try:
                found = read_records(batch, header, _LARGEST_BATCH)
                return next((record for record in found if record.offset == offset), None)
            except RecordsError:
                return None
    return None


def _batches(data: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    view = memoryview(data)
    position = 0
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        if header.batch_length <= 0 or position + header.size > len(view):
            return
        yield header, view[position : position + header.size]
        position += header.size


def _shown(
    header: BatchHeader, batch: memoryview, partition: int, first: int, end: int, query: Query
) -> Iterator[Json | None]:
    about = _batch(header)
    if header.is_control:
        marker = read_end_transaction_marker(batch, header)
        if first <= header.base_offset < end:
            name = "another control record" if marker is None else marker.control_type.name.lower()
            yield {
                "partition": partition,
                "offset": header.base_offset,
                "timestamp": header.base_timestamp,
                "control": name,
                "batch": about,
            }
        return
    for record in read_records(batch, header, _LARGEST_BATCH):
        if first <= record.offset < end:
            yield _record(record, partition, about, query) if query.matches(record) else None


def _record(record: Record, partition: int, batch: Json, query: Query) -> Json:
    longest, most_headers = query.longest, query.most_headers
    shown: Json = {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": field(record.key, longest),
        "value": field(record.value, longest),
        "headers": [
            {"name": name[:longest], "value": field(value, longest)} for name, value in record.headers[:most_headers]
        ],
        "batch": batch,
    }
    if len(record.headers) > most_headers:
        shown["more_headers"] = len(record.headers) - most_headers
    return shown


def field(data: bytes | None, longest: int) -> Json | None:
    """Bytes as text where they are text, and as hexadecimal digits where they are not."""
    if data is None:
        return None
    shown: Json = {"size": len(data)}
    some = data[:longest]
    if len(data) > longest:
        shown["cut"] = True
    text = _text(some, is_cut=len(data) > longest)
    if text is None:
        shown["hex"] = some.hex()
    else:
        shown["text"] = text
    return shown


def _text(data: bytes, is_cut: bool) -> str | None:
    """None if these bytes are not text. What was cut may end within a character."""
    for fewer in range(min(4, len(data)) if is_cut else 1):
        try:
            text = data[: len(data) - fewer].decode()
        except UnicodeDecodeError:
            continue
        # A tab and the ends of lines are text, and so is whatever is only unusual: characters that join letters or
        # emoji, wide spaces, and characters that are newer than this Python.
        lines = text.replace("\r", "")
        return text if printable_lines(lines) == lines else None
    return None


def _batch(header: BatchHeader) -> Json:
    try:
        codec = CompressionType(header.compression).name.lower()
    except ValueError:
        codec = f"unknown ({header.compression})"
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.size,
        "codec": codec,
        "crc": f"{header.crc:08x}",
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
    }

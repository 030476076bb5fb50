"""Walking over the batches of a segment file by reading only their headers."""

import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from barnabas.storage.errors import CorruptFile
from barnabas.storage.open_files import Handle

# One read covers many small batches and costs little more than reading a single header.
_WINDOW: Final = 8192

# Base offset, batch length, and the last offset delta. The fields in between are not needed to find an offset.
_OFFSETS: Final = struct.Struct(">qi11xi")
_unpack_offsets: Final = _OFFSETS.unpack_from
_MIN_SIZE: Final = HEADER_SIZE


class BatchPosition(NamedTuple):
    position: int
    size: int


def scan_headers(file: Handle, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches between two positions of a file, each as its position and header. They must be complete."""
    while position < end:
        window = os.pread(file.fd, min(_WINDOW, end - position), position)
        start = position
        while position + HEADER_SIZE <= start + len(window):
            header = read_header(window, position - start)
            if header.size < _MIN_SIZE or position + header.size > end:
                raise CorruptFile(
                    f"{file.path}: a batch of {header.size} bytes at byte {position}, but {end - position} remain"
                )
            yield position, header
            position += header.size
        if position == start:
            raise CorruptFile(f"{file.path}: {end - position} bytes at byte {position} are too few for a batch")


def last_offset_at(file: Handle, position: int) -> int:
    """The last offset of the batch at a position. Meaningless if there is no batch."""
    header = os.pread(file.fd, _OFFSETS.size, position)
    if len(header) < _OFFSETS.size:
        return -1
    base_offset, _, last_offset_delta = _unpack_offsets(header)
    return int(base_offset + last_offset_delta)


def find_batch(file: Handle, position: int, end: int, offset: int) -> BatchPosition | None:
    """The first batch, from `position` on, whose last offset is `offset` or later."""
    while position < end:
        window = os.pread(file.fd, _WINDOW, position)
        start = position
        limit = min(len(window), end - start) - HEADER_SIZE
        at = 0
        while at <= limit:
            base_offset, batch_length, last_offset_delta = _unpack_offsets(window, at)
            if base_offset + last_offset_delta >= offset:
                return BatchPosition(start + at, LENGTH_OVERHEAD + batch_length)
            at += LENGTH_OVERHEAD + batch_length
            if batch_length < _MIN_SIZE - LENGTH_OVERHEAD:
                raise CorruptFile(f"{file.path}: a batch length of {batch_length} at byte {start + at}")
        if at == 0:
            raise CorruptFile(f"{file.path}: {end - position} bytes at byte {position} are too few for a batch")
        position = start + at
    return None

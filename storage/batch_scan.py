"""Walking over the batches of a segment file by their headers, without reading what is between them."""

import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.records.batch import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from storage.errors import CorruptFile
from storage.open_files import Handle

# One read covers many small batches, and costs little more than one of a single header.
_WINDOW: Final = 8192

# Base offset, batch length, and, behind what is not needed to find an offset, the last offset delta.
_OFFSETS: Final = struct.Struct(">qi11xi")
_unpack_offsets: Final = _OFFSETS.unpack_from
_MIN_SIZE: Final = HEADER_SIZE


class BatchPosition(NamedTuple):
    position: int
    size: int


def scan_headers(file: Handle, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches between two positions of a file, each as its position and header. They must be whole."""
    while position < end:
        window = os.pread(file.fd, min(_WINDOW, end - position), position)
        start = position
        while position + HEADER_SIZE <= start + len(window):
            header = read_header(window, position - start)
            if header.size < _MIN_SIZE or position + header.size > end:
                raise CorruptFile(f"a batch of {header.size} bytes at byte {position}, where {end - position} remain")
            yield position, header
            position += header.size
        if position == start:
            raise CorruptFile(f"{end - position} bytes at byte {position} are too few for a batch")


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
                raise CorruptFile(f"a batch length of {batch_length} at byte {start + at}")
        if at == 0:
            raise CorruptFile(f"{end - position} bytes at byte {position} are too few for a batch")
        position = start + at
    return None

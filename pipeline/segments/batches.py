"""A stretch of a segment file, batch by batch, in chunks of some megabytes.

The file may be growing, or end in the middle of a batch. It is read, never mapped: a map of a file that is cut raises
no exception but ends the process.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from pipeline.segments.native import BatchHeaders, Bytes, scan
from protocol.records.batch import BATCH_LENGTH_POSITION, HEADER_SIZE, LENGTH_OVERHEAD

CHUNK_SIZE: Final = 4 << 20


class Chunk(NamedTuple):
    """Whole batches: the bytes, and their headers, with positions in those. `position` is that in the file."""

    position: int
    data: Bytes
    headers: BatchHeaders


class Unsound(NamedTuple):
    """Where a file ceases to be batches, before the end that was asked for."""

    position: int


def read_chunks(
    path: str, position: int = 0, end: int | None = None, next_offset: int = 0, chunk_size: int = CHUNK_SIZE
) -> Iterator[Chunk | Unsound]:
    """The batches of a file from `position`, where one begins, to `end`.

    The last thing is an Unsound if the file ends, or becomes something else, before that.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        end = os.fstat(descriptor).st_size if end is None else end
        size = chunk_size
        while position < end:
            buffer = np.empty(min(size, end - position), dtype=np.uint8)
            length = _read_full(descriptor, buffer, position)
            headers, whole = scan(buffer, length, next_offset)
            if whole:
                yield Chunk(position, buffer, headers)
                next_offset = int(headers.last_offset[-1]) + 1
                position += whole
                size = chunk_size
                continue
            # Not one whole batch: it is larger than a chunk, or it is none.
            needed = _batch_size(buffer, length)
            if length < len(buffer) or needed <= length or needed > end - position:
                yield Unsound(position)
                return
            size = needed
    finally:
        os.close(descriptor)


def last_offset_in(path: str, base_offset: int) -> int:
    """The offset of the last whole batch in a file, or `base_offset` - 1."""
    last = base_offset - 1
    for chunk in read_chunks(path):
        if isinstance(chunk, Chunk):
            last = int(chunk.headers.last_offset[-1])
    return last


def _batch_size(buffer: Bytes, length: int) -> int:
    if length < HEADER_SIZE:
        return 0
    field = bytes(buffer[BATCH_LENGTH_POSITION : BATCH_LENGTH_POSITION + 4])
    return LENGTH_OVERHEAD + int.from_bytes(field, "big", signed=True)


def _read_full(descriptor: int, buffer: Bytes, position: int) -> int:
    view = buffer.data
    done = 0
    while done < len(view):
        count = os.preadv(descriptor, [view[done:]], position + done)
        if not count:
            break
        done += count
    return done

"""A range of a segment file, batch by batch, in chunks of some megabytes.

The file may be growing, or end in the middle of a batch. It is read, never mapped: accessing a map of a truncated file
kills the process.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from barnabas.pipeline.segments.columns import BatchHeaders, Bytes
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BATCH_LENGTH_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
)
from barnabas.protocol.records.checksum import crc32c

CHUNK_SIZE: Final = 4 << 20
# This many batches of a chunk are scanned in Python, which takes a millisecond or two, before native code is loaded.
WALKED: Final = 4096

# Finds the complete batches at the start of some bytes, and the position after them: `walk` or `native.scan`.
Scan = Callable[[Bytes, int, int], tuple[BatchHeaders, int]]


class Chunk(NamedTuple):
    """Complete batches: their bytes, and their headers with positions in those. `position` is the place in the file."""

    position: int
    data: Bytes
    headers: BatchHeaders


class Unsound(NamedTuple):
    """Where a file stops being batches before the requested end."""

    position: int


def walk(data: Bytes, length: int, next_offset: int) -> tuple[BatchHeaders, int]:
    """The headers of the complete batches at the start of `data[:length]`, and the position after them.

    It stops before a batch that is incomplete or invalid: of another magic, or with an offset below `next_offset` or
    below its predecessor's.
    """
    found = []
    position = 0
    view = data.data
    while length - position >= HEADER_SIZE:
        base, size, _, magic, _, attributes, delta, base_time, max_time, producer, _, _, count = HEADER.unpack_from(
            view, position
        )
        size += LENGTH_OVERHEAD
        if magic != MAGIC or not HEADER_SIZE <= size <= length - position or base < next_offset or delta < 0:
            break
        found.append((position, size, base, base + delta, attributes, base_time, max_time, producer, count))
        if len(found) > WALKED:
            from barnabas.pipeline.segments.native import scan

            return scan(data, length, found[0][2])
        next_offset = base + delta + 1
        position += size
    return BatchHeaders(*np.array(found, dtype=np.int64).reshape(-1, 9).T.copy()), position


def read_chunks(
    path: str,
    position: int = 0,
    end: int | None = None,
    next_offset: int = 0,
    *,
    scan: Scan = walk,
    chunk_size: int | None = None,
) -> Iterator[Chunk | Unsound]:
    """The batches of a file from `position`, where one begins, to `end`.

    If the file ends or becomes invalid before that, the last item is an Unsound.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        end = os.fstat(descriptor).st_size if end is None else end
        chunk_size = chunk_size or CHUNK_SIZE
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
            # Not one complete batch: it is larger than a chunk, or it is not a batch.
            needed = _batch_size(buffer, length)
            if length < len(buffer) or needed <= length or needed > end - position:
                yield Unsound(position)
                return
            size = needed
    finally:
        os.close(descriptor)


def check(chunk: Chunk, number: int) -> bool:
    """Whether a batch of a chunk matches its checksum."""
    start = int(chunk.headers.position[number])
    batch = chunk.data.data[start : start + int(chunk.headers.size[number])]
    expected = int.from_bytes(batch[CRC_POSITION : CRC_POSITION + 4], "big")
    return bool(crc32c(batch[ATTRIBUTES_POSITION:]) == expected)


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

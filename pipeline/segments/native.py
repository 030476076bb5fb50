"""Record batches decoded by compiled code, many at a time, into columns.

The slow and obvious counterparts are protocol/records/batch.py and record.py, and tests keep them equal. Nothing
here raises: a function reports which batch it could not decode, and the slow decoder then says why.

numba compiles this on first use, which takes seconds, and caches it on disk. Loading numba and the cached code takes a
second, so code that does not read records does not import this.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from barnabas.pipeline.segments.columns import BatchHeaders, Bytes, Fields, Ints
from barnabas.protocol.records.batch import HEADER_SIZE, LENGTH_OVERHEAD, MAGIC

# The smallest record: its length, attributes, two deltas, key length, value length and count of headers, a byte each.
MIN_RECORD_SIZE: Final = 7

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile, and cache the result on disk unless there is no place for it (as for a module inside a zip)."""
    try:
        return cast(_F, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(_F, njit(nogil=True)(function))


def scan(data: Bytes, length: int, next_offset: int) -> tuple[BatchHeaders, int]:
    """The headers of the complete batches at the start of `data[:length]`, and the position after them.

    It stops before a batch that is incomplete or invalid: of another magic, or with an offset below `next_offset` or
    below its predecessor's.
    """
    columns = np.empty((9, length // HEADER_SIZE), dtype=np.int64)
    count, position = _scan(data, length, next_offset, columns)
    return BatchHeaders(*columns[:, :count]), int(position)


def decode(data: Bytes, start: Ints, end: Ints, headers: BatchHeaders) -> tuple[Fields, int]:
    """The records in `data[start[i]:end[i]]`; and the number of a batch that does not decode, or -1."""
    too_many = headers.record_count > (end - start) // MIN_RECORD_SIZE
    too_many |= headers.record_count < 0
    if too_many.any():
        return Fields(*np.empty((9, 0), dtype=np.int64)), int(np.argmax(too_many))
    columns = np.empty((9, int(headers.record_count.sum())), dtype=np.int64)
    bad = _decode(
        data,
        start,
        end,
        headers.base_offset,
        headers.attributes,
        headers.base_timestamp,
        headers.max_timestamp,
        headers.record_count,
        columns,
    )
    return Fields(*columns), int(bad)


def decode_headers(data: Bytes, fields: Fields) -> tuple[Ints, Ints, Ints, Ints]:
    """The headers of all records, one after another: where keys start, their lengths, where values start, theirs."""
    columns = np.empty((4, int(fields.header_count.sum())), dtype=np.int64)
    _decode_headers(data, fields.headers, fields.header_count, columns)
    return columns[0], columns[1], columns[2], columns[3]


def gather(data: Bytes, start: Ints, length: Ints) -> tuple[npt.NDArray[np.int32], Bytes]:
    """Ranges of `data` one after another, as Arrow stores them: the offsets, and the bytes."""
    offsets = np.zeros(len(start) + 1, dtype=np.int32)
    np.cumsum(np.maximum(length, 0), out=offsets[1:])
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    _gather(data, start, offsets, out)
    return offsets, out


@compiled
def _big_endian(data, position, size):
    number = np.int64(0)
    if data[position] >= 0x80:
        number = np.int64(-1)
    for i in range(size):
        number = (number << 8) | np.int64(data[position + i])
    return number


@compiled
def _scan(data, length, next_offset, out):
    position = 0
    count = 0
    while length - position >= HEADER_SIZE:
        size = _big_endian(data, position + 8, 4) + LENGTH_OVERHEAD
        if data[position + 16] != MAGIC or size < HEADER_SIZE or size > length - position:
            break
        base_offset = _big_endian(data, position, 8)
        last_offset_delta = _big_endian(data, position + 23, 4)
        if base_offset < next_offset or last_offset_delta < 0:
            break
        out[0, count] = position
        out[1, count] = size
        out[2, count] = base_offset
        out[3, count] = base_offset + last_offset_delta
        out[4, count] = _big_endian(data, position + 21, 2)
        out[5, count] = _big_endian(data, position + 27, 8)
        out[6, count] = _big_endian(data, position + 35, 8)
        out[7, count] = _big_endian(data, position + 43, 8)
        out[8, count] = _big_endian(data, position + 57, 4)
        next_offset = base_offset + last_offset_delta + 1
        position += size
        count += 1
    return count, position


@compiled
def _varint(data, position, end):
    """A zigzag varint and the position after it; a negative position if it is cut short or too long."""
    number = np.uint64(0)
    shift = np.uint64(0)
    while position < end:
        byte = np.uint64(data[position])
        position += 1
        number |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1)), position
        shift += np.uint64(7)
        if shift > np.uint64(63):
            break
    return np.int64(0), np.int64(-1)


@compiled
def _stretch(data, position, end):
    """A length, negative for null, and the bytes that it counts: their start, the length, the position after them."""
    length, position = _varint(data, position, end)
    if position < 0:
        return np.int64(0), np.int64(0), np.int64(-1)
    if length < 0:
        return position, np.int64(-1), position
    if length > end - position:
        return np.int64(0), np.int64(0), np.int64(-1)
    return position, length, position + length


@compiled
def _skip_headers(data, position, end, count):
    for _ in range(count):
        _, length, position = _stretch(data, position, end)
        if position < 0 or length < 0:
            return np.int64(-1)
        _, length, position = _stretch(data, position, end)
        if position < 0:
            return np.int64(-1)
    return position


@compiled
def _decode(data, start, end, base_offset, attributes, base_timestamp, max_timestamp, record_count, out):
    row = 0
    for batch in range(len(start)):
        position = np.int64(start[batch])
        stop = np.int64(end[batch])
        log_append_time = attributes[batch] & 0x08 != 0
        for _ in range(record_count[batch]):
            length, position = _varint(data, position, stop)
            if position < 0 or length < 1 or length > stop - position:
                return batch
            record_end = position + length
            timestamp_delta, position = _varint(data, position + 1, record_end)
            if position < 0:
                return batch
            offset_delta, position = _varint(data, position, record_end)
            if position < 0:
                return batch
            out[0, row] = base_offset[batch] + offset_delta
            out[1, row] = max_timestamp[batch] if log_append_time else base_timestamp[batch] + timestamp_delta
            out[2, row] = batch
            out[3, row], out[4, row], position = _stretch(data, position, record_end)
            if position < 0:
                return batch
            out[5, row], out[6, row], position = _stretch(data, position, record_end)
            if position < 0:
                return batch
            count, position = _varint(data, position, record_end)
            if position < 0 or count < 0 or count > (record_end - position) // 2:
                return batch
            out[7, row] = position
            out[8, row] = count
            if count:
                position = _skip_headers(data, position, record_end, count)
            if position != record_end:
                return batch
            row += 1
        if position != stop:
            return batch
    return -1


@compiled
def _decode_headers(data, start, count, out):
    i = 0
    for row in range(len(start)):
        position = np.int64(start[row])
        for _ in range(count[row]):
            out[0, i], out[1, i], position = _stretch(data, position, len(data))
            out[2, i], out[3, i], position = _stretch(data, position, len(data))
            i += 1


@compiled
def _gather(data, start, offsets, out):
    for row in range(len(start)):
        source = start[row]
        target = offsets[row]
        for i in range(offsets[row + 1] - target):
            out[target + i] = data[source + i]

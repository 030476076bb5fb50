"""The records inside a batch.

    length: varint
    attributes: int8, unused
    timestamp delta: varlong        from the batch's base timestamp
    offset delta: varint            from the batch's base offset
    key length: varint, -1 for null; key
    value length: varint, -1 for null; value
    header count: varint; for each: key length: varint, key, value length: varint, -1 for null, value

Varints are zigzag-encoded, seven bits per byte, lowest first.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import RECORDS_POSITION, BatchHeader
from barnabas.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from barnabas.protocol.records.errors import CorruptRecords

Headers = Sequence[tuple[str, bytes | None]]

_2_63: Final = 2**63
_2_64: Final = 2**64


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def read_records(batch: memoryview, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of one batch, compressed or not. A malformed record raises CorruptRecords when it is reached."""
    data = decompress(header.compression, batch[RECORDS_POSITION : header.size], max_bytes)
    return parse_records(data, header)


def parse_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records of a batch, given the uncompressed bytes that follow the batch's header."""
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    log_append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = read_varint(data, position)
            end = position + length
            if length < 0 or end > len(data):
                raise CorruptRecords(f"a record of {length} bytes where {len(data) - position} follow")
            timestamp_delta, position = read_varint(data, position + 1)
            offset_delta, position = read_varint(data, position)
            key, position = _read_bytes(data, position, end)
            value, position = _read_bytes(data, position, end)
            headers: Headers = ()
            if data[position] == 0:
                position += 1
            else:
                headers, position = _read_headers(data, position, end)
            if position != end:
                raise CorruptRecords(f"a record ends at byte {position} instead of {end}")
            timestamp = int64(base_timestamp + timestamp_delta) if log_append_time is None else log_append_time
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise CorruptRecords("a record is cut short") from None
    if position != len(data):
        raise CorruptRecords(f"{len(data) - position} bytes follow the last record")


def int64(number: int) -> int:
    """Wrap a sum to 64 bits as Java does. A producer chooses both summands, so it may overflow."""
    return number if -_2_63 <= number < _2_63 else (number + _2_63) % _2_64 - _2_63


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > end:
        raise CorruptRecords(f"a field of {length} bytes where {end - position} follow")
    return data[position:stop], stop


def _read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(data, position)
    # A header takes at least two bytes.
    if not 0 <= count <= (end - position) // 2:
        raise CorruptRecords(f"{count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _read_bytes(data, position, end)
        if key is None:
            raise CorruptRecords("a header has no key")
        value, position = _read_bytes(data, position, end)
        try:
            headers.append((key.decode(), value))
        except UnicodeDecodeError as error:
            raise CorruptRecords(f"a header's key is not UTF-8: {error}") from None
    return headers, position


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of up to 64 bits, and the position after it. Raises IndexError if `data` ends within it."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    number = byte & 0x7F
    shift = 7
    while True:
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise CorruptRecords("a varint has more than 64 bits")
    number &= _2_64 - 1
    return (number >> 1) ^ -(number & 1), position + 1


def write_varint(out: bytearray, number: int) -> None:
    zigzag = (number << 1) ^ (number >> 63)
    while zigzag >= 0x80:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def varint(number: int) -> bytes:
    """A number as a zigzag varint."""
    if 0 <= number < len(_SMALL):
        return _SMALL[number]
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


_SMALL: list[bytes] = []
_SMALL += [varint(number) for number in range(512)]


def write_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers = (),
) -> None:
    body = b"".join(
        (
            b"\0",
            varint(timestamp_delta),
            varint(offset_delta),
            b"\1" if key is None else varint(len(key)) + key,
            b"\1" if value is None else varint(len(value)) + value,
            varint(len(headers)),
        )
    )
    if headers:
        body += _headers(headers)
    out += varint(len(body))
    out += body


def _headers(headers: Headers) -> bytes:
    out = bytearray()
    for key, value in headers:
        _write_bytes(out, key.encode())
        _write_bytes(out, value)
    return bytes(out)


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)
    else:
        write_varint(out, len(data))
        out += data

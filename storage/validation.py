"""What a leader checks in the header of a producer's batch before it appends the batch.

The records are only read if the header is not enough (barnabas.storage.inspection).
"""

import struct
from typing import Final

from barnabas.protocol.records.batch import (
    ATTRIBUTES_FIELD,
    BATCH_LENGTH_FIELD,
    BATCH_LENGTH_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_FIELD,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    RECORD_COUNT_FIELD,
    BatchHeader,
    read_header,
    set_log_append_time,
    validate_batch,
)
from barnabas.protocol.records.compression import CompressionType, compression_type
from barnabas.protocol.records.errors import CorruptRecords, InvalidRecords, NotOneBatch, RecordsError, UnsupportedMagic
from barnabas.storage.config import COMPRESSION_TYPES, MAX_INT64, LogConfig, TimestampType
from barnabas.storage.errors import InvalidTimestamp, RecordBatchTooLarge, RecordTooLarge

_LENGTH = struct.Struct(">i")
# The size of an empty record of magic 0.
_SMALLEST_LENGTH = 14
# A record without key, value and headers has seven fields of one byte.
_SMALLEST_RECORD: Final = 7
# The maximum number of bytes that one byte can decompress to, by codec: in deflate, one bit each for length and
# distance give 258 bytes; in snappy, a copy of 64 bytes takes three; in lz4, a byte can extend a match by 255; and four
# bytes of zstd repeat a byte 128 Ki times. Unknown codecs are refused later.
_MAX_RATIO: Final = (1, 1032, 22, 255, 32768, 1, 1, 1)
# If a compressed batch claims more records than this, they are counted: each takes an offset, and a segment has 2**31.
_MANY_RECORDS: Final = 1 << 16
_FORBIDDEN_FLAGS = CONTROL_FLAG | LOG_APPEND_TIME_FLAG
_CODEC_MASK = 0x07
_LAST_CODEC = max(CompressionType)


def check_one_batch(records: memoryview, max_bytes: int) -> BatchHeader:
    """Check that this is exactly one batch, complete, undamaged and without gaps."""
    if len(records) > max_bytes:
        _refuse_large(records, max_bytes)
    try:
        header = validate_batch(records)
    except (CorruptRecords, UnsupportedMagic) as error:
        raise _refusal(records, error) from None
    if LENGTH_OVERHEAD + header[BATCH_LENGTH_FIELD] != len(records):
        raise NotOneBatch("a record set must be exactly one batch")
    record_count = header[RECORD_COUNT_FIELD]
    if record_count != header[LAST_OFFSET_DELTA_FIELD] + 1 or record_count < 1:
        raise InvalidRecords(f"a batch of {record_count} records has a last offset delta of {header.last_offset_delta}")
    size = len(records) - HEADER_SIZE
    if record_count * _SMALLEST_RECORD > size * _MAX_RATIO[header[ATTRIBUTES_FIELD] & COMPRESSION_MASK]:
        raise InvalidRecords(f"a batch claims {record_count} records in {size} bytes")
    return header


def _refuse_large(records: memoryview, max_bytes: int) -> None:
    """Check the size before the checksum. But like Kafka, check first that it is one batch."""
    if len(records) < HEADER_SIZE:
        return
    header = read_header(records)
    if header.magic == MAGIC and header.size == len(records):
        raise RecordTooLarge(f"a batch has {len(records)} bytes, but only {max_bytes} are allowed")


def _refusal(records: memoryview, error: RecordsError) -> RecordsError:
    """The error that Kafka would find first: an invalid length or magic, then an incomplete batch."""
    available = len(records)
    if available >= LENGTH_OVERHEAD:
        (length,) = _LENGTH.unpack_from(records, BATCH_LENGTH_POSITION)
        if length < _SMALLEST_LENGTH:
            return CorruptRecords(f"a batch length of {length}")
        if available > MAGIC_POSITION and records[MAGIC_POSITION] > MAGIC:
            return CorruptRecords(f"magic {records[MAGIC_POSITION]}")
        if available > MAGIC_POSITION and length <= available - LENGTH_OVERHEAD:
            return error
    return NotOneBatch(f"no complete batch in {available} bytes")


def check_client_batch(records: memoryview, header: BatchHeader, segment_bytes: int, latest: int) -> bool:
    """Check the header. Returns True if the records must be inspected (barnabas.storage.inspection)."""
    base_offset, _, _, _, _, attributes, _, base_timestamp, max_timestamp, producer_id, _, base_sequence, count = header
    if len(records) > segment_bytes:
        raise RecordBatchTooLarge(f"a batch has {len(records)} bytes, but a segment only {segment_bytes}")
    if base_offset != 0:
        raise InvalidRecords(f"the base offset is {base_offset} instead of 0")
    if attributes & _FORBIDDEN_FLAGS:
        _refuse_flags(attributes)
    if attributes & _CODEC_MASK > _LAST_CODEC:
        compression_type(attributes & _CODEC_MASK)
    if producer_id != NO_PRODUCER_ID and base_sequence < 0:
        raise InvalidRecords(f"producer {producer_id} sent the invalid sequence {base_sequence}")
    return (
        max_timestamp > latest
        or not NO_TIMESTAMP <= base_timestamp <= latest
        or (count > _MANY_RECORDS and attributes & COMPRESSION_MASK != 0)
    )


def _refuse_flags(attributes: int) -> None:
    if attributes & CONTROL_FLAG:
        raise InvalidRecords("clients may not write control records")
    raise InvalidTimestamp("clients may not set the timestamp type to LogAppendTime")


def latest_allowed_in(config: LogConfig) -> int:
    """How many milliseconds a record's timestamp may be in the future."""
    is_checked = config.message_timestamp_type is TimestampType.CREATE_TIME
    return config.message_timestamp_after_max_ms if is_checked else MAX_INT64


def looks_into_all(config: LogConfig) -> bool:
    """Whether the records of every batch must be inspected. A header does not have the earliest timestamp."""
    has_earliest = config.message_timestamp_before_max_ms != MAX_INT64
    return config.compact or (has_earliest and config.message_timestamp_type is TimestampType.CREATE_TIME)


def rewrites(config: LogConfig) -> bool:
    """Whether a topic with these settings may store batches in changed form."""
    return (
        config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        or COMPRESSION_TYPES[config.compression_type] is not None
    )


def stamp(records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> tuple[memoryview, BatchHeader]:
    """The batch, with the time of the append if the topic requires that."""
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        if records.readonly:
            records = memoryview(bytearray(records))
        set_log_append_time(records, header, now_ms)
        header = read_header(records)
    return records, header

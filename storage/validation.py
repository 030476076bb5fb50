"""What a leader checks of a producer's batch before it appends it, and how it may have to rewrite it.

All that can be decided by the batch's header is. Records are looked at only where the topic's settings ask for
something that the header does not say: keys on a compacted topic, or the very records whose time is out of bounds.
"""

import struct
from typing import Final

from protocol.records.batch import (
    BATCH_LENGTH_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    set_log_append_time,
    validate_batch,
)
from protocol.records.builder import recompress
from protocol.records.compression import CompressionType, compression_type
from protocol.records.errors import CorruptRecords, InvalidRecords, NotOneBatch, RecordsError, UnsupportedMagic
from protocol.records.record import read_records
from storage.config import COMPRESSION_TYPES, MAX_INT64, LogConfig, TimestampType
from storage.errors import InvalidRecord, InvalidTimestamp, RecordBatchTooLarge, RecordError, RecordTooLarge

_LENGTH = struct.Struct(">i")
# That of an empty record of magic 0.
_SMALLEST_LENGTH = 14
# Of a record without key, value and headers, each of its seven fields takes a byte.
_SMALLEST_RECORD: Final = 7
_FORBIDDEN_FLAGS = CONTROL_FLAG | LOG_APPEND_TIME_FLAG
_CODEC_MASK = 0x07
_LAST_CODEC = max(CompressionType)


def check_one_batch(records: memoryview) -> BatchHeader:
    """What a leader appends is one batch, whole, undamaged and without gaps."""
    try:
        header = validate_batch(records)
    except (CorruptRecords, UnsupportedMagic) as error:
        raise _refusal(records, error) from None
    if LENGTH_OVERHEAD + header[1] != len(records):
        raise NotOneBatch("a record set must be exactly one batch")
    if header[12] != header[6] + 1 or header[12] < 1:
        raise InvalidRecords(f"{header.record_count} records with a last offset delta of {header.last_offset_delta}")
    if header[12] * _SMALLEST_RECORD > len(records) - HEADER_SIZE and not header[5] & COMPRESSION_MASK:
        raise InvalidRecords(f"{header.record_count} records in {len(records) - HEADER_SIZE} bytes")
    return header


def _refusal(records: memoryview, error: RecordsError) -> RecordsError:
    """What Kafka finds wrong first: a length or a magic that no format has, then that the batch is not whole."""
    available = len(records)
    if available >= LENGTH_OVERHEAD:
        (length,) = _LENGTH.unpack_from(records, BATCH_LENGTH_POSITION)
        if length < _SMALLEST_LENGTH:
            return CorruptRecords(f"a batch length of {length}")
        if available > MAGIC_POSITION and records[MAGIC_POSITION] > MAGIC:
            return CorruptRecords(f"magic {records[MAGIC_POSITION]}")
        if available > MAGIC_POSITION and length <= available - LENGTH_OVERHEAD:
            return error
    return NotOneBatch(f"no whole batch in {available} bytes")


def check_client_batch(records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    (base_offset, _, _, _, _, attributes, _, _, max_timestamp, producer_id, _, base_sequence, _) = header
    size = len(records)
    if size > config.max_message_bytes:
        raise RecordTooLarge(f"a batch of {size} bytes where {config.max_message_bytes} are allowed")
    if size > config.segment_bytes:
        raise RecordBatchTooLarge(f"a batch of {size} bytes where a segment has {config.segment_bytes}")
    if base_offset != 0:
        raise InvalidRecords(f"a base offset of {base_offset} instead of 0")
    if attributes & _FORBIDDEN_FLAGS:
        _refuse_flags(attributes)
    if attributes & _CODEC_MASK > _LAST_CODEC:
        compression_type(attributes & _CODEC_MASK)
    if producer_id != NO_PRODUCER_ID and base_sequence < 0:
        raise InvalidRecords(f"a sequence of {base_sequence} from producer {producer_id}")
    if (
        max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or config.message_timestamp_before_max_ms != MAX_INT64
    ) and config.message_timestamp_type is TimestampType.CREATE_TIME:
        _check_timestamps(records, header, config, now_ms)
    if "compact" in config.cleanup_policy:
        _check_keys(records, header)


def _refuse_flags(attributes: int) -> None:
    if attributes & CONTROL_FLAG:
        raise InvalidRecords("clients may not write control records")
    raise InvalidTimestamp("clients may not set the timestamp type to LogAppendTime")


def _check_timestamps(records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    errors = [
        RecordError(index, f"timestamp {record.timestamp} is not within {earliest} to {latest}")
        for index, record in enumerate(read_records(records, header))
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    ]
    if errors:
        raise InvalidTimestamp("one or more records were refused because of their timestamp", errors)
    if header.max_timestamp > latest:
        raise InvalidTimestamp(f"max timestamp {header.max_timestamp} is later than {latest}")


def _check_keys(records: memoryview, header: BatchHeader) -> None:
    errors = [
        RecordError(index, "a compacted topic takes no records without a key")
        for index, record in enumerate(read_records(records, header))
        if record.key is None
    ]
    if errors:
        raise InvalidRecord("one or more records were refused because they have no key", errors)


def rewrites(config: LogConfig) -> bool:
    """Whether a topic with these settings may store batches other than as they came."""
    return (
        config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        or COMPRESSION_TYPES[config.compression_type] is not None
    )


def rewrite(records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> tuple[memoryview, BatchHeader]:
    """The batch as the topic's settings want it stored: under their codec, stamped with the time of the append."""
    codec = COMPRESSION_TYPES[config.compression_type]
    if codec is not None and codec != header.compression and not header.is_control:
        records = memoryview(recompress(records, header, codec))
        header = read_header(records)
        if len(records) > config.segment_bytes:
            raise RecordBatchTooLarge(f"a batch of {len(records)} bytes where a segment has {config.segment_bytes}")
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        if records.readonly:
            records = memoryview(bytearray(records))
        set_log_append_time(records, header, now_ms)
        header = read_header(records)
    return records, header

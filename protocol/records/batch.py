"""The header of a record batch.

A batch begins with 61 bytes, all big-endian:

    position  bytes  field
           0      8  base offset
           8      4  batch length: the bytes after this field
          12      4  partition leader epoch
          16      1  magic, always 2
          17      4  CRC-32C of everything from the attributes to the end
          21      2  attributes: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
          23      4  last offset delta
          27      8  base timestamp; with bit 6, the delete horizon
          35      8  max timestamp
          43      8  producer id
          51      2  producer epoch
          53      4  base sequence
          57      4  record count

The checksum does not cover the base offset and the leader epoch, so a broker can set them in place. Between a producer
and a file, only this header is read.
"""

import struct
from typing import Final, NamedTuple

from barnabas.protocol.records.checksum import crc32c
from barnabas.protocol.records.errors import CorruptRecords, UnsupportedMagic

MAGIC: Final = 2

BASE_OFFSET_POSITION: Final = 0
BATCH_LENGTH_POSITION: Final = 8
PARTITION_LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
LAST_OFFSET_DELTA_POSITION: Final = 23
BASE_TIMESTAMP_POSITION: Final = 27
MAX_TIMESTAMP_POSITION: Final = 35
PRODUCER_ID_POSITION: Final = 43
PRODUCER_EPOCH_POSITION: Final = 51
BASE_SEQUENCE_POSITION: Final = 53
RECORD_COUNT_POSITION: Final = 57
RECORDS_POSITION: Final = 61

HEADER_SIZE: Final = RECORDS_POSITION
# The batch length counts neither itself nor the base offset before it.
LENGTH_OVERHEAD: Final = PARTITION_LEADER_EPOCH_POSITION
_MIN_BATCH_LENGTH: Final = HEADER_SIZE - LENGTH_OVERHEAD

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

_MAX_SEQUENCE: Final = 0x7FFFFFFF

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_POSITION_IN_LOG: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")

_unpack_header: Final = HEADER.unpack_from
# Cheaper than BatchHeader._make; the struct has the same number of fields.
_new_header: Final = tuple.__new__
_pack_position_in_log: Final = _POSITION_IN_LOG.pack_into


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return LENGTH_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap around to 0 after the largest int32."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_FLAG)


# The indexes of fields in a BatchHeader. On the hot path, an index is faster than an attribute.
BATCH_LENGTH_FIELD: Final = 1
MAGIC_FIELD: Final = 3
CRC_FIELD: Final = 4
ATTRIBUTES_FIELD: Final = 5
LAST_OFFSET_DELTA_FIELD: Final = 6
MAX_TIMESTAMP_FIELD: Final = 8
PRODUCER_ID_FIELD: Final = 9
PRODUCER_EPOCH_FIELD: Final = 10
BASE_SEQUENCE_FIELD: Final = 11
RECORD_COUNT_FIELD: Final = 12


def advance_sequence(sequence: int, by: int) -> int:
    return (sequence + by) & _MAX_SEQUENCE


def read_header(data: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """The header at `position`. Only its completeness is checked."""
    try:
        return _new_header(BatchHeader, _unpack_header(data, position))
    except struct.error:
        raise CorruptRecords(f"{len(data) - position} bytes are too few for a batch header") from None


def validate_batch(records: memoryview, position: int = 0) -> BatchHeader:
    """Check that a complete, undamaged batch of magic 2 begins at `position`, and return its header."""
    available = len(records) - position
    if available < HEADER_SIZE:
        _refuse_short_batch(records, position)
    header = _new_header(BatchHeader, _unpack_header(records, position))
    batch_length = header[BATCH_LENGTH_FIELD]
    if header[MAGIC_FIELD] != MAGIC:
        raise UnsupportedMagic(f"magic {header.magic}")
    if not _MIN_BATCH_LENGTH <= batch_length <= available - LENGTH_OVERHEAD:
        raise CorruptRecords(f"batch length {batch_length} where {available - LENGTH_OVERHEAD} bytes follow it")
    if crc32c(records[position + ATTRIBUTES_POSITION : position + LENGTH_OVERHEAD + batch_length]) != header[CRC_FIELD]:
        raise CorruptRecords(f"the batch at byte {position} does not match its checksum")
    return header


def _refuse_short_batch(records: memoryview, position: int) -> None:
    # Older formats have the magic at the same position and a shorter header.
    if len(records) - position > MAGIC_POSITION and records[position + MAGIC_POSITION] in (0, 1):
        raise UnsupportedMagic(f"magic {records[position + MAGIC_POSITION]}")
    raise CorruptRecords(f"{len(records) - position} bytes are too few for a batch")


def assign_position(
    records: memoryview, base_offset: int, batch_length: int, partition_leader_epoch: int, position: int = 0
) -> None:
    """Set the base offset and the leader epoch in place; the checksum does not cover them.

    The batch length between the two is written again unchanged: one call instead of two.
    """
    _pack_position_in_log(records, position, base_offset, batch_length, partition_leader_epoch)


def set_log_append_time(records: memoryview, header: BatchHeader, timestamp: int, position: int = 0) -> None:
    """Mark the batch with the broker's timestamp. The records' own timestamps remain, unused."""
    _ATTRIBUTES.pack_into(records, position + ATTRIBUTES_POSITION, header.attributes | LOG_APPEND_TIME_FLAG)
    _TIMESTAMP.pack_into(records, position + MAX_TIMESTAMP_POSITION, timestamp)
    seal(records[position : position + header.size])


def seal(batch: memoryview) -> None:
    """Write the checksum of an otherwise complete batch."""
    _CRC.pack_into(batch, CRC_POSITION, crc32c(batch[ATTRIBUTES_POSITION:]))

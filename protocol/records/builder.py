"""Building batches: for control records, coordinators, compaction and tests."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    seal,
)
from barnabas.protocol.records.checksum import crc32c
from barnabas.protocol.records.compression import CompressionType, compress
from barnabas.protocol.records.errors import InvalidRecords
from barnabas.protocol.records.record import Headers, write_record

# The header fields that the checksum covers, and those before it.
_COVERED: Final = struct.Struct(">hiqqqhii")
_COVERED_POSITION: Final = ATTRIBUTES_POSITION
_BEFORE: Final = struct.Struct(">qiibI")


class NewRecord(NamedTuple):
    """A record that has no offset yet."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    compression: CompressionType = CompressionType.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    if not records:
        raise InvalidRecords("a batch needs at least one record")
    base_timestamp = max_timestamp = records[0].timestamp
    data = bytearray()
    for delta, (timestamp, key, value, headers) in enumerate(records):
        max_timestamp = max(max_timestamp, timestamp)
        write_record(data, delta, timestamp - base_timestamp, key, value, headers)
    attributes = (
        (LOG_APPEND_TIME_FLAG if log_append_time else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
    )
    if compression:
        data = bytearray(compress(compression, data))
        attributes |= compression
    count = len(records)
    return frame_batch(
        data,
        (attributes, count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count),
        base_offset,
        partition_leader_epoch,
    )


def frame_batch(
    data: bytes | bytearray,
    fields: tuple[int, int, int, int, int, int, int, int],
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """A header followed by encoded records. `fields` are the header's last eight fields, which the checksum covers."""
    covered = _COVERED.pack(*fields) + data
    length = len(covered) + _COVERED_POSITION - LENGTH_OVERHEAD
    batch = bytearray(_BEFORE.pack(base_offset, length, partition_leader_epoch, MAGIC, crc32c(covered)))
    batch += covered
    return batch


def assemble_batch(
    header: BatchHeader, data: bytes | bytearray | memoryview, compression: CompressionType, level: int | None = None
) -> bytearray:
    """A batch with this header and these encoded records. The length, the codec and the checksum are adjusted."""
    data = compress(compression, data, level)
    header = header._replace(
        batch_length=HEADER_SIZE - LENGTH_OVERHEAD + len(data),
        attributes=header.attributes & ~COMPRESSION_MASK | compression,
    )
    batch = bytearray(HEADER.pack(*header))
    batch += data
    seal(memoryview(batch))
    return batch

"""Making batches: for control records, coordinators, compaction and tests."""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.records.batch import (
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
from protocol.records.compression import CompressionType, compress, decompress
from protocol.records.errors import InvalidRecords
from protocol.records.record import Headers, write_record


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
    base_timestamp = records[0].timestamp
    data = bytearray()
    for delta, record in enumerate(records):
        write_record(data, delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
    attributes = (
        (LOG_APPEND_TIME_FLAG if log_append_time else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return assemble_batch(header, data, compression)


def assemble_batch(header: BatchHeader, data: bytes | bytearray, compression: CompressionType) -> bytearray:
    """A batch with this header around these encoded records; the length, the codec and the checksum are made to fit."""
    data = compress(compression, data)
    header = header._replace(
        batch_length=HEADER_SIZE - LENGTH_OVERHEAD + len(data),
        attributes=header.attributes & ~COMPRESSION_MASK | compression,
    )
    batch = bytearray(HEADER.pack(*header))
    batch += data
    seal(memoryview(batch))
    return batch


def recompress(batch: memoryview, header: BatchHeader, compression: CompressionType) -> bytearray:
    """The same batch under another codec; its records are not looked at."""
    return assemble_batch(header, decompress(header.compression, batch[HEADER_SIZE : header.size]), compression)

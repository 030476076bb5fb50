"""barnabas.protocol.records.batch: headers read, checked and patched in place."""

import struct

import pytest

from barnabas.protocol.records import batch as batch_module
from barnabas.protocol.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    advance_sequence,
    assign_position,
    read_header,
    set_log_append_time,
    validate_batch,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.errors import CorruptRecords, RecordsError, UnsupportedMagic
from barnabas.protocol.records.record import read_records

RECORDS = [NewRecord(1000 + i, b"key%d" % i, b"value") for i in range(3)]

# A batch that Apache Kafka 4.3.1 wrote: the marker that aborts a transaction of producer 4, at offset 10.
KAFKA_BATCH = bytes.fromhex(
    "000000000000000a0000004200000000026de4e91e003000000000000001a1e236cacf000001a1e236cacf00000000000000040000"
    "ffffffff000000012000000008000000000c00000000000000"
)


def test_the_header_of_a_batch_that_apache_kafka_wrote() -> None:
    header = validate_batch(memoryview(KAFKA_BATCH))
    assert header.base_offset == 10
    assert header.size == len(KAFKA_BATCH)
    assert header.partition_leader_epoch == 0
    assert header.is_control
    assert header.is_transactional
    assert not header.is_log_append_time
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 0, -1)
    assert header.last_sequence == -1
    assert header.record_count == 1
    assert header.next_offset == 11


def test_every_damaged_byte_from_the_magic_on_is_noticed() -> None:
    batch = build_batch(RECORDS)
    for position in range(8, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 0x40
        if 12 <= position < 16:  # the leader epoch is the broker's to set
            validate_batch(memoryview(damaged))
        else:
            with pytest.raises(RecordsError):
                validate_batch(memoryview(damaged))


def test_every_cut_is_noticed() -> None:
    batch = build_batch(RECORDS)
    for size in range(len(batch)):
        with pytest.raises(CorruptRecords):
            validate_batch(memoryview(batch)[:size])


@pytest.mark.parametrize("length", [-1, 0, HEADER_SIZE - 13, 1 << 30])
def test_a_length_that_cannot_be(length: int) -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptRecords, match="batch length"):
        validate_batch(memoryview(batch))


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_formats_are_distinguished_from_damage(magic: int) -> None:
    batch = build_batch(RECORDS)
    batch[16] = magic
    with pytest.raises(UnsupportedMagic):
        validate_batch(memoryview(batch))


def test_a_short_message_of_the_old_format() -> None:
    with pytest.raises(UnsupportedMagic, match="magic 1"):
        validate_batch(memoryview(bytes(16) + b"\x01" + bytes(17)))


def test_the_place_in_the_log_is_assigned_without_touching_the_checksum() -> None:
    batch = memoryview(build_batch(RECORDS))
    crc = read_header(batch).crc
    assign_position(batch, 1 << 40, read_header(batch).batch_length, 7)
    header = validate_batch(batch)
    assert (header.base_offset, header.partition_leader_epoch, header.crc) == (1 << 40, 7, crc)


def test_log_append_time_replaces_the_records_timestamps() -> None:
    batch = memoryview(build_batch(RECORDS))
    set_log_append_time(batch, read_header(batch), 5000)
    header = validate_batch(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == 5000
    assert header.base_timestamp == 1000
    assert [record.timestamp for record in read_records(batch, header)] == [5000, 5000, 5000]


def test_sequences_wrap_around_to_zero() -> None:
    assert advance_sequence(0x7FFFFFFF, 1) == 0
    assert advance_sequence(0x7FFFFFFE, 1) == 0x7FFFFFFF
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0x7FFFFFFF))
    assert header.last_sequence == 1


def test_the_place_of_every_field_that_is_read_by_its_place() -> None:
    places = {
        name.removesuffix("_FIELD").lower(): place
        for name, place in vars(batch_module).items()
        if name.endswith("_FIELD")
    }
    assert places
    assert places == {name: place for place, name in enumerate(BatchHeader._fields) if name in places}

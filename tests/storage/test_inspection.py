"""barnabas.storage.inspection: what is wrong with records, found piece by piece."""

from typing import Any

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.builder import NewRecord, build_batch, frame_batch
from barnabas.protocol.records.compression import CompressionType, compress
from barnabas.protocol.records.errors import CorruptRecords, InvalidRecords
from barnabas.protocol.records.record import read_records, write_record
from barnabas.storage.config import MAX_INT64, LogConfig, TimestampType
from barnabas.storage.errors import InvalidRecord, InvalidTimestamp, RecordTooLarge
from barnabas.storage.inspection import ROOM_AT_ONCE, UNITS, Inspection
from tests.storage.support import NOW

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
TOO_LATE = NOW + 3_600_001


def records(count: int, *, key: bytes | None = b"k", timestamp: int = NOW, **fields: Any) -> memoryview:
    return memoryview(build_batch([NewRecord(timestamp, key, b"v")] * count, **fields))


def lying(data: bytes | bytearray, count: int, kind: CompressionType, base_timestamp: int = NOW) -> memoryview:
    fields = (kind, count - 1, base_timestamp, NOW, -1, -1, -1, count)
    return memoryview(frame_batch(compress(kind, data), fields))


def inspect(batch: memoryview, config: LogConfig = COMPACTED, **options: Any) -> Inspection:
    return Inspection(batch, read_header(batch), config, NOW, **options)


def finished(batch: memoryview, config: LogConfig = COMPACTED, **options: Any) -> memoryview:
    inspection = inspect(batch, config, **options)
    while not inspection.finished:
        inspection.advance()
    return inspection.result[0]


def test_a_batch_without_fault_stays_as_it_is() -> None:
    batch = records(10)
    assert finished(batch) is batch


def test_it_stops_after_so_many_records() -> None:
    inspection = inspect(records(2500))
    assert inspection.advance(1000) <= 0
    assert inspection.advance(1000) <= 0
    assert not inspection.finished
    assert inspection.advance(1000) > 0
    assert inspection.finished


@pytest.mark.parametrize("kind", [kind for kind in CompressionType if kind is not CompressionType.NONE])
def test_it_does_not_go_on_where_there_is_not_enough_room(kind: CompressionType) -> None:
    batch = memoryview(build_batch([NewRecord(NOW, b"k", bytes(1_000_000))] * 2, compression=kind))
    inspection = inspect(batch)
    for _ in range(3):
        inspection.advance(room=ROOM_AT_ONCE)
    assert not inspection.finished
    while not inspection.finished:
        inspection.advance()
    assert inspection.result[0] is batch


def test_a_few_of_the_records_at_fault_are_named() -> None:
    with pytest.raises(InvalidRecord) as refused:
        finished(records(5000, key=None))
    assert [error.batch_index for error in refused.value.record_errors] == list(range(16))
    with pytest.raises(InvalidTimestamp) as too_late:
        finished(records(5000, timestamp=TOO_LATE), LogConfig())
    assert [error.batch_index for error in too_late.value.record_errors] == list(range(16))


def test_a_record_without_key_is_not_asked_for_its_time() -> None:
    with pytest.raises(InvalidRecord):
        finished(records(3, key=None, timestamp=TOO_LATE))


def test_one_time_out_of_bounds_decides_the_error() -> None:
    mixed = [NewRecord(NOW, None, b"v"), NewRecord(TOO_LATE, b"k", b"v")]
    with pytest.raises(InvalidTimestamp) as refused:
        finished(memoryview(build_batch(mixed)))
    assert [error.batch_index for error in refused.value.record_errors] == [0, 1]


def test_with_log_append_time_the_producers_does_not_matter() -> None:
    finished(records(3, timestamp=TOO_LATE), LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))


@pytest.mark.parametrize("base_timestamp", [MAX_INT64, -MAX_INT64 - 1])
def test_a_base_timestamp_at_the_end_of_time(base_timestamp: int) -> None:
    data = bytearray()
    write_record(data, 0, 0, b"k", b"v")
    with pytest.raises(InvalidTimestamp):
        finished(lying(data, 1, CompressionType.NONE, base_timestamp), LogConfig())


def test_a_sum_beyond_64_bits_goes_round_as_in_java() -> None:
    data = bytearray()
    write_record(data, 0, NOW - MAX_INT64, b"k", b"v")
    finished(lying(data, 1, CompressionType.NONE, MAX_INT64), LogConfig())


@pytest.mark.parametrize("kind", CompressionType)
def test_offsets_have_to_follow_on_one_another_in_compressed_batches(kind: CompressionType) -> None:
    data = bytearray()
    write_record(data, 0, 0, b"k", b"v")
    batch = lying(data * 2, 2, kind)
    if kind is CompressionType.NONE:
        finished(batch)
    else:
        with pytest.raises(InvalidRecords, match="offset delta"):
            finished(batch)


def test_records_larger_than_any_producer_packs_them() -> None:
    """Kafka has no such limit."""
    with pytest.raises(InvalidRecords):
        finished(memoryview(build_batch([NewRecord(NOW, b"k", bytes(70_000_000))], compression=CompressionType.ZSTD)))


@pytest.mark.parametrize("sent", CompressionType)
def test_another_codec(sent: CompressionType) -> None:
    batch = records(10, compression=sent)
    changed = finished(batch, LogConfig(compression_type="lz4"), scan=False)
    assert read_header(changed).compression == CompressionType.LZ4
    assert list(read_records(changed, read_header(changed))) == list(read_records(batch, read_header(batch)))


def test_another_codec_needs_room_for_all_records() -> None:
    batch = memoryview(build_batch([NewRecord(NOW, b"k", bytes(1_000_000))], compression=CompressionType.ZSTD))
    inspection = inspect(batch, LogConfig(compression_type="gzip"), scan=False)
    inspection.advance(room=ROOM_AT_ONCE)
    assert not inspection.finished
    inspection.advance()
    assert inspection.finished


def test_another_codec_takes_most_of_what_one_turn_may_do() -> None:
    batch = memoryview(build_batch([NewRecord(NOW, b"k", bytes(60_000))], compression=CompressionType.ZSTD))
    inspection = inspect(batch, LogConfig(compression_type="gzip"), scan=False)
    assert inspection.advance(UNITS, ROOM_AT_ONCE) < UNITS / 10
    assert inspection.finished
    small = inspect(records(1), LogConfig(compression_type="gzip"), scan=False)
    assert small.advance(UNITS, ROOM_AT_ONCE) <= UNITS - 20


def test_what_becomes_too_large_under_another_codec() -> None:
    batch = memoryview(build_batch([NewRecord(NOW, b"k", bytes(2_000_000))], compression=CompressionType.ZSTD))
    with pytest.raises(RecordTooLarge):
        finished(batch, LogConfig(compression_type="uncompressed"), scan=False)


def test_what_does_not_decompress() -> None:
    garbage = memoryview(frame_batch(b"garbage", (4, 0, NOW, NOW, -1, -1, -1, 1)))
    for options in {"config": COMPACTED}, {"config": LogConfig(compression_type="lz4"), "scan": False}:
        with pytest.raises(CorruptRecords):
            finished(garbage, **options)

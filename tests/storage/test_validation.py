"""barnabas.storage.validation, by what a log makes of it."""

import dataclasses
import struct
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header, seal, validate_batch
from barnabas.protocol.records.builder import NewRecord, build_batch, frame_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.errors import (
    CorruptRecords,
    InvalidRecords,
    NotOneBatch,
    UnsupportedCompression,
    UnsupportedMagic,
)
from barnabas.storage.config import TimestampType
from barnabas.storage.errors import InvalidRecord, InvalidTimestamp, RecordBatchTooLarge, RecordError, RecordTooLarge
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.write import AppendResult
from tests.storage.support import NOW, append, batch, bytes_of, make_log, read_all, refusal

HOUR = 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return make_log(tmp_path / "topic-0")


def settings(log: Log, **changes: object) -> None:
    log.config = dataclasses.replace(log.config, **changes)  # type: ignore[arg-type]


def test_a_damaged_batch(log: Log) -> None:
    damaged = batch()
    damaged[-1] ^= 1
    assert isinstance(refusal(log, damaged), CorruptRecords)


def test_a_batch_that_is_cut_short(log: Log) -> None:
    assert isinstance(refusal(log, batch()[:-1]), NotOneBatch)


def test_an_empty_record_set(log: Log) -> None:
    assert isinstance(refusal(log, memoryview(bytearray())), NotOneBatch)


def test_more_than_one_batch(log: Log) -> None:
    assert isinstance(refusal(log, memoryview(bytearray(bytes(batch()) * 2))), NotOneBatch)


def test_a_length_that_no_batch_has(log: Log) -> None:
    for length in (13, 0, -1):
        lying = batch()
        struct.pack_into(">i", lying, 8, length)
        assert isinstance(refusal(log, lying), CorruptRecords)


def test_a_format_that_does_not_exist(log: Log) -> None:
    for magic in (3, 255):
        odd = batch()
        odd[16] = magic
        assert isinstance(refusal(log, odd), CorruptRecords)
        assert isinstance(refusal(log, odd[:-1]), CorruptRecords)


def test_an_old_format(log: Log) -> None:
    old = batch()
    old[16] = 1
    assert isinstance(refusal(log, old), UnsupportedMagic)


@pytest.mark.parametrize(("count", "last_offset_delta"), [(3, 1), (1, 1), (2, 2), (0, -1), (-1, -2)])
def test_a_wrong_record_count(log: Log, count: int, last_offset_delta: int) -> None:
    lying = batch(b"a", b"b")
    struct.pack_into(">i", lying, 57, count)
    struct.pack_into(">i", lying, 23, last_offset_delta)
    seal(lying)
    assert isinstance(refusal(log, lying), InvalidRecords)


def test_more_records_than_there_is_room_for(log: Log) -> None:
    """A false count with a matching last offset would leave a hole of that many offsets."""
    lying = batch(b"a")
    fitting = (len(lying) - 61) // 7
    for count in (fitting + 1, 2**31 - 1):
        struct.pack_into(">i", lying, 57, count)
        struct.pack_into(">i", lying, 23, count - 1)
        seal(lying)
        assert isinstance(refusal(log, lying), InvalidRecords)


def test_as_many_records_as_there_is_room_for(log: Log) -> None:
    smallest = build_batch([NewRecord(NOW, None, None)] * 3)
    assert len(smallest) == 61 + 3 * 7
    append(log, memoryview(smallest))


@pytest.mark.parametrize(("codec", "ratio"), [(1, 1032), (2, 22), (3, 255), (4, 32768)])
def test_more_records_than_could_be_decompressed(log: Log, codec: int, ratio: int) -> None:
    """Whatever the bytes contain, no codec can produce more records from them, so they need not be decompressed."""
    for count in (10 * ratio // 7 + 1, 2**31 - 1):
        lying = memoryview(frame_batch(bytes(10), (codec, count - 1, NOW, NOW, -1, -1, -1, count)))
        error = refusal(log, lying)
        assert isinstance(error, InvalidRecords)
        assert "in 10 bytes" in str(error)


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec is not CompressionType.NONE])
def test_a_compressed_batch_that_claims_very_many_records_has_to_show_them(log: Log, codec: CompressionType) -> None:
    """Each takes an offset, and a segment has room for 2**31 of them."""
    honest = build_batch([NewRecord(NOW, None, b"")] * 65537, compression=codec)
    append(log, memoryview(honest))
    lying = memoryview(bytearray(honest))
    struct.pack_into(">i", lying, 57, 65538)
    struct.pack_into(">i", lying, 23, 65537)
    seal(lying)
    assert isinstance(refusal(log, lying), InvalidRecords)


def test_what_is_too_large_needs_no_checksum(log: Log) -> None:
    settings(log, max_message_bytes=100)
    damaged = batch(bytes(100))
    damaged[-1] ^= 1
    assert isinstance(refusal(log, damaged), RecordTooLarge)
    assert isinstance(refusal(log, damaged[:-1]), NotOneBatch)


@pytest.mark.parametrize("base_timestamp", [2**63 - 1, -(2**63)])
def test_a_base_timestamp_at_the_end_of_time(log: Log, base_timestamp: int) -> None:
    lying = batch()
    struct.pack_into(">q", lying, 27, base_timestamp)
    seal(lying)
    assert isinstance(refusal(log, lying), InvalidTimestamp)


def test_a_batch_that_takes_long_holds_up_those_behind_it(log: Log) -> None:
    settings(log, cleanup_policy=frozenset({"compact"}))
    long, short = memoryview(build_batch([NewRecord(NOW, b"k", b"")] * 5000)), batch()
    (first,) = log.append([batch(), long, short], leader_epoch=0, now_ms=NOW)
    assert first == AppendResult(0, 0)
    assert log.inspection is not None
    while not log.inspection.finished:
        log.inspection.advance()
    results = log.append([long, short], leader_epoch=0, now_ms=NOW)
    assert results == [AppendResult(1, 5000), AppendResult(5001, 5001)]
    assert log.inspection is None


def test_many_small_batches_take_long_too(log: Log) -> None:
    settings(log, cleanup_policy=frozenset({"compact"}))
    batches = [memoryview(build_batch([NewRecord(NOW, b"k", b"")] * 100)) for _ in range(30)]
    results = log.append(batches, leader_epoch=0, now_ms=NOW)
    assert 5 < len(results) < 12


def test_coordinators_do_not_wait(log: Log) -> None:
    settings(log, cleanup_policy=frozenset({"compact"}), compression_type="zstd")
    long = memoryview(build_batch([NewRecord(NOW, b"k", bytes(100))] * 5000))
    assert append(log, long, origin=AppendOrigin.COORDINATOR) == [0]


def test_a_codec_that_does_not_exist(log: Log) -> None:
    odd = batch()
    odd[22] |= 5
    seal(odd)
    assert isinstance(refusal(log, odd), UnsupportedCompression)


def test_offsets_are_for_the_leader_to_assign(log: Log) -> None:
    assert isinstance(refusal(log, batch(base_offset=5)), InvalidRecords)


def test_control_records_come_from_coordinators_only(log: Log) -> None:
    control = batch(control=True)
    assert isinstance(refusal(log, control), InvalidRecords)
    append(log, control, origin=AppendOrigin.COORDINATOR)


def test_a_producer_without_a_sequence(log: Log) -> None:
    assert isinstance(refusal(log, batch(producer_id=5, producer_epoch=0)), InvalidRecords)


def test_max_message_bytes(log: Log) -> None:
    limit = len(batch(b"0123456789"))
    settings(log, max_message_bytes=limit)
    assert isinstance(refusal(log, batch(b"0123456789a")), RecordTooLarge)
    append(log, batch(b"0123456789"))


def test_a_batch_larger_than_a_segment(log: Log) -> None:
    settings(log, segment_bytes=100)
    assert isinstance(refusal(log, batch(bytes(100))), RecordBatchTooLarge)


def test_a_record_from_the_future_is_named(log: Log) -> None:
    records = [NewRecord(NOW, None, b""), NewRecord(NOW + HOUR + 1, None, b""), NewRecord(NOW + HOUR, None, b"")]
    for codec in CompressionType:
        error = refusal(log, memoryview(build_batch(records, compression=codec)))
        assert isinstance(error, InvalidTimestamp)
        assert [record.batch_index for record in error.record_errors] == [1]
    append(log, memoryview(build_batch(records[:1] + records[2:])))


def test_a_max_timestamp_that_no_record_has(log: Log) -> None:
    lying = batch()
    struct.pack_into(">q", lying, 35, NOW + HOUR + 1)
    seal(lying)
    assert isinstance(refusal(log, lying), InvalidTimestamp)


def test_a_record_from_the_past_is_named(log: Log) -> None:
    records = [NewRecord(NOW, None, b""), NewRecord(NOW - 101, None, b""), NewRecord(-1, None, b"")]
    append(log, memoryview(build_batch(records)))
    settings(log, message_timestamp_before_max_ms=100)
    error = refusal(log, memoryview(build_batch(records)))
    assert isinstance(error, InvalidTimestamp)
    assert [record.batch_index for record in error.record_errors] == [1]


def test_the_producer_may_not_say_that_the_broker_stamped_it(log: Log) -> None:
    assert isinstance(refusal(log, batch(log_append_time=True)), InvalidTimestamp)


@pytest.mark.parametrize("codec", CompressionType)
def test_a_compacted_topic_needs_keys(log: Log, codec: CompressionType) -> None:
    records = [NewRecord(NOW, b"k", b""), NewRecord(NOW, None, b"")]
    settings(log, cleanup_policy=frozenset({"compact", "delete"}))
    error = refusal(log, memoryview(build_batch(records, compression=codec)))
    assert isinstance(error, InvalidRecord)
    assert list(error.record_errors) == [RecordError(1, "a compacted topic accepts no records without a key")]
    append(log, memoryview(build_batch(records[:1], compression=codec)))


def test_log_append_time(log: Log) -> None:
    settings(log, message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    # The producer's own time does not matter, however wrong it is.
    (result,) = log.append([batch(b"a", b"b", timestamp=NOW + 10 * HOUR)], leader_epoch=0, now_ms=NOW + 5)
    assert result == AppendResult(0, 1, log_append_time=NOW + 5)
    assert [record.timestamp for record in read_all(log)] == [NOW + 5, NOW + 5]
    header = validate_batch(memoryview(bytes_of(log.read(0, 1000, upper_bound=2))))
    assert header.is_log_append_time


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("uncompressed", CompressionType.NONE),
        ("gzip", CompressionType.GZIP),
        ("snappy", CompressionType.SNAPPY),
        ("lz4", CompressionType.LZ4),
        ("zstd", CompressionType.ZSTD),
    ],
)
@pytest.mark.parametrize("sent", CompressionType)
def test_the_topic_may_choose_the_codec(log: Log, name: str, codec: CompressionType, sent: CompressionType) -> None:
    settings(log, compression_type=name)
    append(log, batch(b"a" * 200, b"b" * 200, compression=sent))
    assert read_header(bytes_of(log.read(0, 1000, upper_bound=2))).compression == codec
    assert [record.value for record in read_all(log)] == [b"a" * 200, b"b" * 200]


def test_the_topic_may_choose_the_level(log: Log) -> None:
    values = [b"value-%d" % (number * number) for number in range(500)]
    sizes = []
    for level in (1, 9):
        settings(log, compression_type="gzip", compression_level=level)
        before = log.segments.active.size
        append(log, batch(*values))
        sizes.append(log.segments.active.size - before)
    assert sizes[1] < sizes[0]


def test_batches_pass_untouched_otherwise(log: Log) -> None:
    for codec in CompressionType:
        sent = bytes(batch(b"a" * 200, compression=codec))
        (offset,) = append(log, memoryview(bytearray(sent)))
        assert bytes_of(log.read(offset, 1000, upper_bound=offset + 1))[16:] == sent[16:]


def test_a_buffer_that_cannot_be_written_to_is_copied(log: Log) -> None:
    sent = bytes(batch(b"a"))
    assert append(log, memoryview(sent), memoryview(sent)) == [0, 1]
    assert read_header(sent).base_offset == 0

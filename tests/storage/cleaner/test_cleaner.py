"""barnabas.storage.cleaner: what stays of a log that is compacted, rule by rule, and how it comes in."""

import os
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType
from barnabas.protocol.records.record import write_record
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.work import here
from barnabas.storage.config import MAX_INT64, TimestampType
from barnabas.storage.file_names import CLEANED, DELETED, SWAP
from barnabas.storage.log import Log
from barnabas.storage.write import AppendResult
from tests.storage.cleaner.support import (
    cleaning_of,
    compact,
    compacted_log,
    contents,
    end_transaction,
    headers,
    keyed,
    put,
    put_records,
    read_all,
    read_committed,
    transaction,
)
from tests.storage.support import NOW, PARTITION, append, bytes_of, close_log, flush_log, found_max_timestamp, make_log

LATER = NOW + 10_000


def close_segment(log: Log) -> None:
    log.roll(NOW)
    flush_log(log)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return compacted_log(tmp_path)


# -- records


def test_the_last_record_of_a_key_stays(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"), (b"c", b"1"), (b"a", b"3"))

    stats = compact(log)

    assert contents(log) == [(b"b", b"1"), (b"c", b"1"), (b"a", b"3")]
    assert (stats.records_read, stats.records_kept, stats.end_offset) == (5, 3, 5)


def test_offsets_and_times_do_not_move(log: Log) -> None:
    records = [NewRecord(NOW + number, b"%d" % (number % 3), b"value", [("h", b"eader")]) for number in range(10)]
    append(log, memoryview(build_batch(records)))
    before = {record.offset: record for record in read_all(log)}

    compact(log)

    assert [before[record.offset] for record in read_all(log)] == read_all(log)
    assert [record.offset for record in read_all(log)] == [7, 8, 9]
    (header,) = headers(log)
    assert (header.base_offset, header.last_offset, header.max_timestamp) == (0, 9, NOW + 9)


def test_a_batch_knows_the_latest_time_of_what_is_left_in_it(log: Log) -> None:
    append(log, memoryview(build_batch([NewRecord(NOW + 5, b"a", b"1"), NewRecord(NOW, b"b", b"1")])))
    put(log, (b"a", b"2"), timestamp=NOW + 1)

    compact(log)

    assert [header.max_timestamp for header in headers(log)] == [NOW, NOW + 1]
    found = found_max_timestamp(log)
    assert found is not None
    assert (found.offset, found.timestamp) == (2, NOW + 1)


def test_what_the_broker_stamped_keeps_its_time(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    append(log, keyed((b"a", b"1"), (b"b", b"1"), timestamp=5))
    append(log, keyed((b"a", b"2"), timestamp=6))

    compact(log)

    assert [record.timestamp for record in read_all(log)] == [NOW, NOW]
    assert all(header.attributes & LOG_APPEND_TIME_FLAG for header in headers(log))


def test_a_log_that_was_compacted_before_loses_what_has_come_again(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    compact(log)
    put(log, (b"b", b"2"))

    compact(log)

    assert contents(log) == [(b"a", b"1"), (b"c", b"1"), (b"b", b"2")]


def test_records_without_a_key_are_removed(log: Log) -> None:
    put(log, (None, b"1"), (b"a", b"1"))
    compact(log)
    assert contents(log) == [(b"a", b"1")]


@pytest.mark.parametrize("codec", CompressionType)
def test_compressed_batches_are_compressed_again(log: Log, codec: CompressionType) -> None:
    pairs = [(b"%d" % (number % 50), b"value %d" % number) for number in range(100)]
    put(log, *pairs, (b"tombstone", None), compression=codec)
    put(log, *pairs[:25], compression=codec)

    compact(log)

    assert contents(log) == [*pairs[75:], (b"tombstone", None), *pairs[:25]]
    assert [header.compression for header in headers(log)] == [codec, codec]


def test_a_batch_that_loses_nothing_stays_as_it_is(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"), compression=CompressionType.ZSTD)
    put(log, (b"c", b"1"))
    before = bytes_of(log.read(0, 1000, upper_bound=log.end_offset))

    stats = compact(log)

    assert bytes_of(log.read(0, 1000, upper_bound=log.end_offset)) == before
    assert stats.bytes_written == 0
    assert log.first_dirty_offset == 3


# -- tombstones


def test_a_tombstone_stays_for_delete_retention_ms(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))

    compact(log, NOW)
    assert contents(log) == [(b"b", b"1"), (b"a", None)]

    put(log, (b"c", b"1"))
    compact(log, NOW + 999)
    assert contents(log) == [(b"b", b"1"), (b"a", None), (b"c", b"1")]

    put(log, (b"d", b"1"))
    compact(log, NOW + 1000)
    assert contents(log) == [(b"b", b"1"), (b"c", b"1"), (b"d", b"1")]


def test_the_delete_horizon_takes_the_place_of_the_base_timestamp(log: Log) -> None:
    append(log, memoryview(build_batch([NewRecord(NOW + 1, b"a", None), NewRecord(NOW + 2, b"b", b"1")])))
    put(log, (b"c", b"1"))

    compact(log, NOW + 50)

    first, second = headers(log)
    assert (first.has_delete_horizon, first.base_timestamp) == (True, NOW + 50 + 1000)
    assert not second.has_delete_horizon
    assert [record.timestamp for record in read_all(log)] == [NOW + 1, NOW + 2, NOW]
    assert first.max_timestamp == NOW + 2


def test_a_batch_with_a_delete_horizon_knows_the_latest_time_of_what_is_left_in_it(log: Log) -> None:
    append(log, memoryview(build_batch([NewRecord(NOW + 5, b"a", b"1"), NewRecord(NOW, b"b", None)])))
    put(log, (b"a", b"2"), timestamp=NOW + 1)
    compact(log)
    assert [header.max_timestamp for header in headers(log)] == [NOW, NOW + 1]


def test_the_delete_horizon_is_set_once(log: Log) -> None:
    put(log, (b"a", None), (b"b", b"1"))
    compact(log, NOW)
    put(log, (b"b", b"2"))
    compact(log, NOW + 500)
    assert headers(log)[0].base_timestamp == NOW + 1000


def test_the_longest_delete_retention_keeps_tombstones_forever(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, delete_retention_ms=MAX_INT64)
    put(log, (b"a", None))
    put(log, (b"b", b"1"))
    compact(log)
    assert headers(log)[0].base_timestamp == MAX_INT64
    put(log, (b"b", b"2"))
    compact(log, NOW + 10**15)
    assert [(record.key, record.timestamp) for record in read_all(log)] == [(b"a", NOW), (b"b", NOW)]


@pytest.mark.parametrize("value", [b"1", None])
@pytest.mark.parametrize("delta", [1, MAX_INT64])
def test_timestamps_beyond_64_bits_wrap_around_as_in_java(log: Log, delta: int, value: bytes | None) -> None:
    """A producer chooses both the base timestamp and what is added to it."""
    records = bytearray()
    write_record(records, 0, 0, b"a", b"1")
    write_record(records, 1, delta, b"b", value)
    put_records(log, records, count=2, base_timestamp=MAX_INT64, max_timestamp=NOW)
    put(log, (b"a", b"2"))

    compact(log)

    assert [record.timestamp for record in read_all(log)] == [MAX_INT64 + delta - 2**64, NOW]


# -- transactions


def test_nothing_stays_of_an_aborted_transaction(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    transaction(log, 5, (b"a", b"aborted"), commit=False)
    transaction(log, 6, (b"b", b"committed"), commit=True)

    compact(log)

    assert contents(log) == [(b"a", b"1"), (b"b", b"committed")]


def test_an_aborted_tombstone_deletes_nothing(log: Log) -> None:
    put(log, (b"a", b"1"))
    transaction(log, 5, (b"a", None), commit=False)
    compact(log)
    compact_again(log, LATER)
    assert (b"a", b"1") in contents(log)


def test_aborts_in_later_segments_are_known(tmp_path: Path) -> None:
    """The marker lies where nothing may be compacted yet."""
    log = compacted_log(tmp_path, min_compaction_lag_ms=100)
    put(log, (b"a", b"1"), timestamp=NOW - 200)
    put(
        log,
        (b"a", b"aborted"),
        timestamp=NOW - 200,
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    close_segment(log)
    end_transaction(log, ControlType.ABORT, 5)

    compact(log)

    assert [(record.key, record.value) for record in read_committed(log)] == [(b"a", b"1")]
    assert headers(log)[-1].is_control


def test_markers_stay_as_long_as_something_of_their_transaction_does(log: Log) -> None:
    transaction(log, 5, (b"a", b"1"), (b"b", b"1"), commit=True)
    transaction(log, 6, (b"a", b"2"), commit=True)
    for now_ms in (NOW, LATER, LATER + 10_000):
        compact_again(log, now_ms)
    assert [header.producer_id for header in headers(log) if header.is_control] == [5, 6]


def test_a_marker_without_its_transaction_stays_for_delete_retention_ms(log: Log) -> None:
    transaction(log, 5, (b"a", b"1"), commit=True)
    transaction(log, 5, (b"a", b"2"), commit=True, sequence=1)
    markers = lambda: [header.base_offset for header in headers(log) if header.is_control]  # noqa: E731

    compact(log, NOW)  # the first transaction loses its record
    assert markers() == [1, 3]
    compact_again(log, NOW + 1)  # its marker gets its horizon
    assert markers() == [1, 3]
    compact_again(log, NOW + 1000)
    assert markers() == [1, 3]
    compact_again(log, NOW + 1001)
    assert markers() == [3]


def test_readers_learn_of_an_aborted_transaction_until_only_its_marker_is_left(log: Log) -> None:
    transaction(log, 5, (b"a", b"aborted"), commit=False)
    put(log, (b"b", b"1"))
    compact(log)
    assert [each.first_offset for each in log.aborted_transactions(0, log.end_offset)] == [0]
    # A reader that started before continues, and must still know that what it has is aborted.
    compact_again(log, NOW + 1)
    assert log.producer_state.producers[5].batches[-1].last_offset == 0
    assert [each.first_offset for each in log.aborted_transactions(0, log.end_offset)] == [0]


def test_a_transactional_producer_continues(log: Log) -> None:
    transaction(log, 5, (b"a", b"1"), commit=True)
    compact(log)
    put(log, (b"a", b"2"), producer_id=5, producer_epoch=0, base_sequence=1, transactional=True)
    close_segment(log)
    # The segment holds a transaction that is under way.
    assert Cleaner({PARTITION: log}).choose(NOW) is None
    end_transaction(log, ControlType.COMMIT, 5)
    compact(log)
    assert contents(log) == [(b"a", b"2")]


# -- batches that say something without records


def test_the_last_batch_of_a_known_producer_leaves_its_header(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=5, producer_epoch=2, base_sequence=7)
    put(log, (b"a", b"2"), (b"b", b"2"))

    compact(log)

    first, _ = headers(log)
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 1, 0)
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (5, 2, 7, 8)
    assert (first.base_timestamp, first.max_timestamp) == (NO_TIMESTAMP, NOW)
    assert contents(log) == [(b"a", b"2"), (b"b", b"2")]


def test_a_producer_goes_on_after_its_records_are_gone_and_the_broker_was_killed(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"2"), (b"b", b"2"))
    compact(log)
    log.drop_files()
    for snapshot in (tmp_path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()

    log = make_log(tmp_path / "topic-0", log.config, clean=False)
    repeated = keyed((b"a", b"1"), (b"b", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    (result,) = log.append([repeated], leader_epoch=0, now_ms=NOW)
    assert isinstance(result, AppendResult)
    assert (result.base_offset, result.duplicate) == (0, True)
    assert append(log, keyed((b"c", b"1"), producer_id=5, producer_epoch=0, base_sequence=2)) == [4]


def test_a_producer_that_is_forgotten_leaves_nothing(log: Log) -> None:
    put(log, (b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"2"))
    log.producer_state.forget_expired(LATER, 1)
    compact(log)
    assert [header.base_offset for header in headers(log)] == [1]


def test_the_last_marker_of_a_producer_without_records_stays(log: Log) -> None:
    end_transaction(log, ControlType.ABORT, 5, producer_epoch=3)
    put(log, (b"a", b"1"))
    for now_ms in (NOW, NOW + 1000, NOW + 1001):
        compact_again(log, now_ms)
    first = headers(log)[0]
    assert (first.producer_id, first.producer_epoch, first.is_control, first.record_count) == (5, 3, True, 1)


def test_the_last_batch_that_is_compacted_leaves_its_header(log: Log) -> None:
    """A follower that copies the log, or a broker that recovers it, sees where it continues."""
    put(log, (b"a", b"1"))
    transaction(log, 5, (b"a", b"aborted"), commit=False)
    put(log, (None, b"goes"))

    compact(log)

    last = headers(log)[-1]
    assert (last.base_offset, last.next_offset, last.record_count) == (3, 4, 0)


def compact_again(log: Log, now_ms: int) -> None:
    """Compact once more, with something new that needs it."""
    put(log, (b"again", b"%d" % now_ms), timestamp=NOW)
    compact(log, now_ms)


# -- segments


def test_segments_grow_together(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, segment_bytes=200)
    for number in range(10):
        put(log, (b"%d" % (number % 2), b"value" * 10))
    assert len(log.segments) == 10

    compact(log)

    # What stays are the last two records, an active segment that is empty, and empty segments for what went.
    assert sum(segment.size > 0 for segment in log.segments) == 2
    compact_again(log, NOW)
    assert len(log.segments) < 6
    assert [record.offset for record in read_all(log)] == [8, 9, 10]


def test_a_read_continues_after_what_was_removed(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, segment_bytes=100)
    for _ in range(5):
        put(log, (b"a", b"value"))
    compact(log)
    for offset in range(5):
        assert [record.offset for record in read_all(log, offset)] == [4]


def test_a_reader_that_holds_a_slice_still_gets_its_bytes(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    held = log.read(0, 1000, upper_bound=log.end_offset)
    before = bytes_of(held)
    compact(log)
    assert bytes_of(held) == before


def test_it_is_the_same_after_a_restart(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, segment_bytes=300)
    for number in range(20):
        put(log, (b"%d" % (number % 7), b"%d" % number), compression=CompressionType.LZ4)
        transaction(log, 5, (b"%d" % (number % 5), b"%d" % number), commit=bool(number % 3), sequence=number)
    compact(log)
    before = contents(log)
    producers = log.producer_state.snapshot()
    close_log(log)

    reopened = make_log(tmp_path / "topic-0", log.config)
    assert contents(reopened) == before
    reopened.drop_files()
    recovered = make_log(tmp_path / "topic-0", log.config, clean=False)
    assert contents(recovered) == before
    assert sorted(recovered.producer_state.snapshot()) == sorted(producers)


def test_no_files_are_left_over(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, segment_bytes=200)
    for number in range(10):
        put(log, (b"a", b"%d" % number))
    compact(log)
    compact_again(log, NOW)
    assert len(log.segments) < 5
    names = os.listdir(tmp_path / "topic-0")
    assert not [name for name in names if name.endswith((CLEANED, SWAP, DELETED))]
    snapshots = {int(name[:20]) for name in names if name.endswith(".snapshot")}
    assert snapshots <= {segment.base_offset for segment in log.segments}


def test_records_without_timestamps_keep_their_age(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"a", b"2"), timestamp=-1)
    os.utime(log.segments.first.path, ns=(10**9, 10**9))
    compact(log)
    assert log.segments.first.largest_timestamp == 1000


# -- as much at a time as memory allows


def test_what_does_not_fit_into_memory_is_left_for_the_next_time(log: Log) -> None:
    for turn in range(2):
        for number in range(50):
            put(log, (b"key %d" % number, b"%d" % turn))

    stats = compact(log, dedupe_buffer_size=20 * 200)

    assert 0 < stats.end_offset < 50
    assert len(read_all(log)) == 100
    rounds = 0
    while log.first_dirty_offset != log.end_offset:
        stats = compact(log, dedupe_buffer_size=20 * 200)
        rounds += 1
    assert 2 <= rounds < 20
    assert contents(log) == [(b"key %d" % number, b"1") for number in range(50)]


def test_a_segment_that_ends_in_a_gap_is_compacted_to_its_end(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, segment_bytes=100)
    for base_offset in (0, 10, 20):
        gappy = keyed((b"a", b"%d" % base_offset), base_offset=base_offset, partition_leader_epoch=0)
        log.append_as_follower(gappy, now_ms=NOW)
    log.update_high_watermark(log.end_offset)
    flush_log(log)
    cleaning = cleaning_of(log)
    for step in cleaning.steps():
        step()
    assert contents(log) == [(b"a", b"10"), (b"a", b"20")]
    assert log.first_dirty_offset == 20


def test_one_batch_fits_always(log: Log) -> None:
    put(log, *[(b"%d" % (number // 2), b"value") for number in range(100)])
    compact(log, dedupe_buffer_size=1)
    assert len(read_all(log)) == 50


# -- choosing


def test_the_dirtiest_log_comes_first(tmp_path: Path) -> None:
    logs = {}
    for name, dirty in (("some", 5), ("most", 20), ("few", 1)):
        folder = tmp_path / name
        folder.mkdir()
        log = logs[name] = compacted_log(folder)
        put(log, *[(b"%d" % number, b"v") for number in range(20)])
        compact(log)
        put(log, *[(b"%d" % number, b"v") for number in range(dirty)])
        close_segment(log)
    chosen = Cleaner(logs).choose(NOW)  # type: ignore[arg-type]
    assert chosen is not None
    assert chosen.log is logs["most"]


def test_a_log_that_is_not_compacted_is_left_alone(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, cleanup_policy=frozenset({"delete"}))
    put(log, (b"a", b"1"), (b"a", b"2"))
    close_segment(log)
    assert Cleaner({PARTITION: log}).choose(NOW) is None


@pytest.mark.usefixtures("leaves_damage")
def test_a_damaged_log_is_left_alone_from_then_on(log: Log, tmp_path: Path) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    with open(log.segments.first.path, "r+b") as file:
        file.seek(65)
        file.write(b"\xff")
    before = (tmp_path / "topic-0" / "00000000000000000000.log").read_bytes()
    cleaner = Cleaner({PARTITION: log}, start_work=here)
    cleaning = cleaner.choose(NOW)
    assert cleaning is not None
    for step in cleaning.steps():
        step()

    assert cleaning.stats is None
    assert cleaner.choose(NOW) is None
    assert (tmp_path / "topic-0" / "00000000000000000000.log").read_bytes() == before

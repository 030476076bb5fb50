"""storage.log: appending, reading, rolling, truncating and flushing one partition's log."""

import dataclasses
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from protocol.records.batch import read_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.errors import CorruptRecords
from storage.config import LogConfig
from storage.errors import LogFailure, OffsetOutOfRange, OffsetsOutOfOrder, OutOfOrderSequence
from storage.file_names import DELETED
from storage.filesystem import Buffer
from storage.log import Log
from storage.producer_state import AppendOrigin
from storage.write import AppendResult
from tests.storage.support import (
    NOW,
    FaultyFileSystem,
    append,
    batch,
    bytes_of,
    flush_log,
    make_log,
    read_all,
    records_in,
    values_of,
)

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return make_log(tmp_path / "topic-0")


@pytest.fixture
def disk() -> FaultyFileSystem:
    return FaultyFileSystem()


def small_segments(tmp_path: Path, count: int, **settings: int) -> Log:
    """A log of one record a segment."""
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100, **settings))  # type: ignore[arg-type]
    for number in range(count):
        append(log, batch(b"%d" % number))
    assert len(log.segments) == count
    return log


def idempotent(sequence: int, *values: bytes) -> memoryview:
    return batch(*values, producer_id=5, producer_epoch=0, base_sequence=sequence)


# -- appending


def test_offsets_are_assigned_in_order(log: Log) -> None:
    assert append(log, batch(b"a", b"b"), batch(b"c"), leader_epoch=4) == [0, 2]
    assert append(log, batch(b"d"), leader_epoch=4) == [3]
    assert [(record.offset, record.value) for record in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert read_header(bytes_of(log.read(3, 1000, upper_bound=4))).partition_leader_epoch == 4


def test_one_bad_record_set_costs_the_others_nothing(log: Log) -> None:
    damaged = batch(b"bad")
    damaged[-1] ^= 1
    good, bad, also_good = log.append([batch(b"a"), damaged, batch(b"b")], leader_epoch=0, now_ms=NOW)
    assert good == AppendResult(0, 0)
    assert isinstance(bad, CorruptRecords)
    assert also_good == AppendResult(1, 1)
    assert values_of(read_all(log)) == [b"a", b"b"]


def test_more_record_sets_than_one_write_takes(log: Log) -> None:
    assert append(log, *(batch(b"%d" % number) for number in range(2500))) == list(range(2500))
    assert values_of(read_all(log)) == [b"%d" % number for number in range(2500)]


def test_a_repeated_batch_is_answered_and_not_appended(log: Log) -> None:
    assert append(log, idempotent(0, b"a", b"b"), idempotent(2, b"c")) == [0, 2]
    again, new = log.append([idempotent(0, b"a", b"b"), idempotent(3, b"d")], leader_epoch=0, now_ms=NOW)
    assert again == AppendResult(0, 1, NOW, duplicate=True)
    assert new == AppendResult(3, 3)
    assert values_of(read_all(log)) == [b"a", b"b", b"c", b"d"]


def test_a_repetition_within_one_call(log: Log) -> None:
    first, again, gap = log.append([idempotent(0), idempotent(0), idempotent(2)], leader_epoch=0, now_ms=NOW)
    assert first == AppendResult(0, 0)
    assert again == AppendResult(0, 0, NOW, duplicate=True)
    assert isinstance(gap, OutOfOrderSequence)


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, disk: FaultyFileSystem) -> None:
    log = make_log(tmp_path / "topic-0", file_system=disk)
    append(log, idempotent(0, b"a"))
    size = os.path.getsize(log.segments.active.path)
    for room in (0, 1, len(batch(b"b")), len(batch(b"b")) + 20):
        disk.write_error, disk.room = NO_SPACE, room
        results = log.append([idempotent(1, b"b"), idempotent(2, b"c")], leader_epoch=0, now_ms=NOW)
        assert [type(result) for result in results] == [LogFailure, LogFailure]
        assert log.end_offset == 1
        assert os.path.getsize(log.segments.active.path) == size
        disk.write_error = None
    assert append(log, idempotent(1, b"b")) == [1]
    assert values_of(read_all(log)) == [b"a", b"b"]


def test_a_repetition_of_what_could_not_be_written_is_not_acknowledged_either(
    tmp_path: Path, disk: FaultyFileSystem
) -> None:
    log = make_log(tmp_path / "topic-0", file_system=disk)
    append(log, idempotent(0, b"a"))
    disk.write_error = NO_SPACE
    in_the_log, new, new_again = log.append(
        [idempotent(0, b"a"), idempotent(1, b"b"), idempotent(1, b"b")], leader_epoch=0, now_ms=NOW
    )
    assert in_the_log == AppendResult(0, 0, NOW, duplicate=True)
    assert [type(new), type(new_again)] == [LogFailure, LogFailure]


def test_a_failed_write_does_not_undo_an_earlier_one_of_the_same_call(tmp_path: Path, disk: FaultyFileSystem) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), file_system=disk)
    first = batch(b"a")
    disk.write_error, disk.room = NO_SPACE, 1000
    disk.open_error = None
    # The first fills a segment; for the second no file can be made.
    results = log.append([first], leader_epoch=0, now_ms=NOW)
    disk.open_error = OSError(errno.EMFILE, "Too many open files")
    results += log.append([batch(b"b"), batch(b"c")], leader_epoch=0, now_ms=NOW)
    assert results[0] == AppendResult(0, 0)
    assert [type(result) for result in results[1:]] == [LogFailure, LogFailure]
    disk.open_error = disk.write_error = None
    assert append(log, batch(b"d")) == [1]
    assert values_of(read_all(log)) == [b"a", b"d"]


def test_a_follower_takes_batches_as_they_are(tmp_path: Path) -> None:
    leader = make_log(tmp_path / "leader")
    append(leader, batch(b"a", b"b"), batch(b"c"), leader_epoch=3)
    append(leader, batch(b"d"), leader_epoch=5)
    data = bytes_of(leader.read(0, 10_000, upper_bound=4))
    follower = make_log(tmp_path / "follower", LogConfig(segment_bytes=150))
    follower.append_as_follower(memoryview(data), now_ms=NOW)
    assert follower.end_offset == 4
    assert read_all(follower) == read_all(leader)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries == [(3, 0), (5, 3)]
    with pytest.raises(OffsetsOutOfOrder):
        follower.append_as_follower(memoryview(data), now_ms=NOW)


def test_a_follower_keeps_what_came_before_a_batch_that_is_cut_short(tmp_path: Path) -> None:
    leader = make_log(tmp_path / "leader")
    append(leader, batch(b"a"), batch(b"b"), batch(b"c"))
    data = bytes_of(leader.read(0, 10_000, upper_bound=3))
    follower = make_log(tmp_path / "follower")
    with pytest.raises(CorruptRecords):
        follower.append_as_follower(memoryview(data)[:-1], now_ms=NOW)
    assert values_of(read_all(follower)) == [b"a", b"b"]


def test_a_follower_writes_many_batches_at_once(tmp_path: Path, disk: FaultyFileSystem) -> None:
    leader = make_log(tmp_path / "leader")
    append(leader, *(idempotent(number, b"%d" % number) for number in range(100)))
    data = bytes_of(leader.read(0, 1 << 20, upper_bound=100))
    follower = make_log(tmp_path / "follower", file_system=disk)
    writes = 0
    pwritev = disk.pwritev

    def counting_pwritev(fd: int, buffers: Sequence[Buffer], position: int) -> int:
        nonlocal writes
        writes += fd == follower.segments.active.handle.fd
        return pwritev(fd, buffers, position)

    disk.pwritev = counting_pwritev  # type: ignore[method-assign]
    follower.append_as_follower(memoryview(data), now_ms=NOW)
    assert writes == 1
    assert read_all(follower) == read_all(leader)
    assert follower.producer_state.producers == leader.producer_state.producers


def test_a_followers_full_disk_leaves_its_log_as_it_was(tmp_path: Path, disk: FaultyFileSystem) -> None:
    follower = make_log(tmp_path / "follower", file_system=disk)
    follower.append_as_follower(batch(b"a", partition_leader_epoch=0), now_ms=NOW)
    disk.write_error = NO_SPACE
    with pytest.raises(LogFailure):
        follower.append_as_follower(batch(b"b", base_offset=1, partition_leader_epoch=0), now_ms=NOW)
    disk.write_error = None
    assert follower.end_offset == 1
    follower.append_as_follower(batch(b"c", base_offset=1, partition_leader_epoch=0), now_ms=NOW)
    assert values_of(read_all(follower)) == [b"a", b"c"]


def test_a_follower_may_have_gaps_where_the_leader_compacted(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0")
    log.append_as_follower(batch(b"a", base_offset=10, partition_leader_epoch=0), now_ms=NOW)
    log.append_as_follower(batch(b"b", base_offset=20, partition_leader_epoch=0), now_ms=NOW)
    assert [record.offset for record in read_all(log)] == [10, 20]
    assert [record.offset for record in read_all(log, 11)] == [20]


# -- reading


def test_every_offset_finds_its_batch(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=5000, index_interval_bytes=200))
    for number in range(0, 300, 3):
        append(log, batch(*(b"%d" % (number + more) for more in range(3))))
    assert len(log.segments) > 1
    for offset in range(300):
        header = read_header(bytes_of(log.read(offset, 1, upper_bound=300)))
        assert header.base_offset == offset - offset % 3


def test_offsets_outside_of_the_log(log: Log) -> None:
    append(log, batch(b"a", b"b"))
    log.increment_log_start_offset(1)
    for offset in (-1, 0, 3):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 1000, upper_bound=2)
    assert log.read(2, 1000, upper_bound=2) is None


def test_nothing_beyond_the_upper_bound_is_handed_out(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=1000, index_interval_bytes=200))
    for number in range(0, 100, 2):
        append(log, batch(b"%d" % number, b"%d" % (number + 1)))
    for bound in range(101):
        # A batch that reaches to the bound is left out as a whole.
        assert len(read_all(log, 0, upper_bound=bound)) == bound - bound % 2


def test_max_bytes(log: Log) -> None:
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    one = len(batch(b"a"))
    assert len(bytes_of(log.read(0, 2 * one, upper_bound=3))) == 2 * one
    assert len(bytes_of(log.read(0, 2 * one + 5, upper_bound=3))) == 2 * one + 5
    assert len(bytes_of(log.read(0, 1, upper_bound=3))) == one
    assert log.read(0, one - 1, upper_bound=3, min_one_message=False) is None
    assert len(bytes_of(log.read(0, one, upper_bound=3, min_one_message=False))) == one


def test_a_slice_of_a_deleted_segment_can_still_be_read(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    held = log.read(0, 1000, upper_bound=3)
    log.delete_segments([log.segments.first], NOW).run()
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1000, upper_bound=3)
    assert values_of(records_in(bytes_of(held))) == [b"0"]


# -- reading by time


def test_the_first_record_not_earlier_than_a_time(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=600, index_interval_bytes=100))
    times = [100, 300, 200, 300, 500, 400, 500, 700, 600, 900]
    for number in range(0, 10, 2):
        records = [NewRecord(times[number], None, b""), NewRecord(times[number + 1], None, b"")]
        append(log, memoryview(build_batch(records, compression=CompressionType.ZSTD)))
    for timestamp in range(0, 1000, 50):
        expected = next(((offset, time) for offset, time in enumerate(times) if time >= timestamp), None)
        found = log.find_by_timestamp(timestamp)
        assert (found and (found.offset, found.timestamp)) == expected
    latest = log.find_max_timestamp()
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (9, 900)


def test_the_time_of_deleted_records_is_not_found(log: Log) -> None:
    append(log, batch(b"a", timestamp=500), batch(b"b", timestamp=400), batch(b"c", timestamp=450))
    log.increment_log_start_offset(1)
    found = log.find_by_timestamp(300)
    assert found is not None
    assert found.offset == 1
    assert log.find_by_timestamp(500) is None


def test_a_log_without_records_has_no_times(log: Log) -> None:
    assert log.find_by_timestamp(0) is None
    assert log.find_max_timestamp() is None


def test_the_epoch_comes_with_the_offset(log: Log) -> None:
    append(log, batch(timestamp=100), leader_epoch=2)
    found = log.find_by_timestamp(50)
    assert found is not None
    assert found.leader_epoch == 2


# -- transactions


def marker(control_type: ControlType, producer_id: int = 5) -> memoryview:
    return memoryview(
        build_end_transaction_marker(
            control_type, timestamp=NOW, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        )
    )


def transactional(sequence: int, producer_id: int = 5) -> memoryview:
    return batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_the_last_stable_offset_waits_for_open_transactions(log: Log) -> None:
    append(log, batch(), transactional(0), batch())
    assert (log.high_watermark, log.last_stable_offset) == (3, 1)
    assert len(read_all(log, 0, upper_bound=log.last_stable_offset)) == 1
    append(log, marker(ControlType.COMMIT), origin=AppendOrigin.COORDINATOR)
    assert (log.high_watermark, log.last_stable_offset) == (4, 4)


def test_the_last_stable_offset_never_passes_the_high_watermark(log: Log) -> None:
    append(log, batch())
    log.append([batch(), transactional(0)], leader_epoch=0, now_ms=NOW)
    assert log.last_stable_offset == log.high_watermark == 1


def test_the_last_stable_offset_never_lies_before_the_log_start(log: Log) -> None:
    append(log, transactional(0), batch(), batch())
    log.increment_log_start_offset(2)
    assert (log.log_start_offset, log.last_stable_offset, log.high_watermark) == (2, 2, 3)
    append(log, marker(ControlType.COMMIT), origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 4


def test_aborted_transactions_are_told_to_readers(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=170))
    append(log, transactional(0), transactional(0, producer_id=6))
    append(log, marker(ControlType.ABORT), origin=AppendOrigin.COORDINATOR)
    append(log, batch())
    append(log, marker(ControlType.ABORT, producer_id=6), origin=AppendOrigin.COORDINATOR)
    assert len(log.segments) > 1
    assert log.aborted_transactions(0, 5) == [(5, 0, 2, 1), (6, 1, 4, 5)]
    assert log.aborted_transactions(3, 5) == [(6, 1, 4, 5)]
    assert log.aborted_transactions(0, 1) == [(5, 0, 2, 1)]


# -- rolling


def test_a_full_segment_is_rolled(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]
    folder = sorted(os.listdir(log.folder))
    assert "00000000000000000001.snapshot" in folder
    assert "00000000000000000001.timeindex" in folder
    assert values_of(read_all(log)) == [b"0", b"1", b"2"]


def test_one_call_may_fill_several_segments(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=250))
    append(log, *(batch(b"%d" % number) for number in range(10)))
    assert len(log.segments) == 4
    assert values_of(read_all(log)) == [b"%d" % number for number in range(10)]


def test_an_old_segment_is_rolled_by_the_records_times(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_ms=1000))
    append(log, batch(timestamp=NOW), batch(timestamp=NOW + 1000))
    assert len(log.segments) == 1
    append(log, batch(timestamp=NOW + 1001))
    assert len(log.segments) == 2


def test_without_times_a_segment_ages_by_the_clock(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_ms=1000))
    append(log, batch(timestamp=-1))
    append(log, batch(timestamp=-1), now_ms=NOW + 1000)
    assert len(log.segments) == 1
    append(log, batch(timestamp=-1), now_ms=NOW + 1001)
    assert len(log.segments) == 2


def test_jitter_rolls_earlier_but_never_later(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_ms=1000, segment_jitter_ms=10_000))
    for start in range(NOW, NOW + 100_000, 2000):
        before = len(log.segments)
        append(log, batch(timestamp=start))
        append(log, batch(timestamp=start + 1001))
        assert len(log.segments) > before


def test_a_full_index_rolls_the_segment(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for number in range(20):
        append(log, batch(timestamp=NOW + number))
    assert len(log.segments) > 3
    for segment in log.segments:
        assert segment.time_index.size <= 48


def test_offsets_too_far_from_the_base_roll_the_segment(log: Log) -> None:
    append(log, batch(b"a"))
    log.append_as_follower(batch(b"b", base_offset=2**31 - 1, partition_leader_epoch=0), now_ms=NOW)
    log.append_as_follower(batch(b"c", base_offset=2**31, partition_leader_epoch=0), now_ms=NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    assert [record.value for record in read_all(log)] == [b"a", b"b", b"c"]


def test_a_first_offset_too_far_from_the_base_rolls_even_an_empty_segment(log: Log) -> None:
    log.append_as_follower(batch(b"a", base_offset=2**33, partition_leader_epoch=0), now_ms=NOW)
    assert log.segments.active.base_offset == 2**33
    assert [record.offset for record in read_all(log, 2**33)] == [2**33]


def test_settings_change_a_live_log_at_once(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0")
    append(log, batch(), batch())
    log.config = dataclasses.replace(log.config, segment_bytes=100)
    append(log, batch(), batch())
    assert len(log.segments) == 3


# -- truncating and deleting


def test_truncation_cuts_at_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, batch(b"a", b"b"), batch(b"c", b"d"), batch(b"e"))
    log.truncate_to(3, NOW).run()
    assert (log.end_offset, log.high_watermark) == (2, 2)
    assert values_of(read_all(log)) == [b"a", b"b"]
    assert append(log, batch(b"f")) == [2]
    assert values_of(read_all(log)) == [b"a", b"b", b"f"]


def test_what_was_cut_off_is_not_found_where_it_was(log: Log) -> None:
    for value in (b"a", b"b", b"c"):
        append(log, batch(value))
    assert read_header(bytes_of(log.read(2, 1, upper_bound=3))).base_offset == 2
    log.truncate_to(1, NOW)
    append(log, batch(b"d", b"e", b"f"))
    assert read_header(bytes_of(log.read(2, 1, upper_bound=4))).base_offset == 1


def test_truncation_across_segments(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 5)
    pending = log.truncate_to(2, NOW)
    assert all(path.endswith(DELETED) for path in pending.paths)
    pending.run()
    assert (log.end_offset, len(log.segments)) == (2, 3)
    assert values_of(read_all(log)) == [b"0", b"1"]
    assert [name for name in os.listdir(log.folder) if name.endswith(DELETED)] == []
    append(log, batch(b"new"))
    assert values_of(read_all(log)) == [b"0", b"1", b"new"]


def test_truncation_undoes_what_producers_did(log: Log) -> None:
    append(log, idempotent(0), idempotent(1), transactional(2))
    log.truncate_to(1, NOW)
    assert log.last_stable_offset == 1
    assert append(log, idempotent(1)) == [1]


def test_truncation_forgets_later_times(log: Log) -> None:
    append(log, batch(timestamp=100), batch(timestamp=900), batch(timestamp=200))
    log.truncate_to(1, NOW)
    latest = log.find_max_timestamp()
    assert latest is not None
    assert latest.timestamp == 100


def test_truncation_beyond_the_end_does_nothing(log: Log) -> None:
    append(log, batch(b"a"))
    log.truncate_to(1, NOW)
    assert values_of(read_all(log)) == [b"a"]


def test_beginning_anew_at_an_offset(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    log.truncate_fully_and_start_at(7, NOW).run()
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (7, 7, 7)
    assert log.leader_epochs.entries == []
    assert append(log, batch(b"a")) == [7]
    assert values_of(read_all(log)) == [b"a"]


def test_truncation_below_the_first_segment(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    log.delete_segments([log.segments.first], NOW).run()
    log.truncate_to(0, NOW).run()
    assert (log.log_start_offset, log.end_offset) == (0, 0)


def test_truncation_of_a_batch_that_begins_with_deleted_records(log: Log) -> None:
    append(log, batch(b"a"), batch(b"b", b"c", b"d"))
    log.increment_log_start_offset(2)
    log.truncate_to(3, NOW).run()
    # Nothing is left, and the offsets of deleted records are not used again.
    assert (log.log_start_offset, log.end_offset) == (2, 2)
    assert append(log, batch(b"e")) == [2]
    assert values_of(read_all(log)) == [b"e"]


def test_truncation_below_the_log_start_offset(log: Log) -> None:
    append(log, batch(b"a"), batch(b"b"), batch(b"c"))
    log.increment_log_start_offset(2)
    log.truncate_to(1, NOW).run()
    assert (log.log_start_offset, log.end_offset) == (1, 1)


def test_records_are_deleted_up_to_the_high_watermark(log: Log) -> None:
    append(log, batch(b"a"), batch(b"b"))
    log.append([batch(b"c")], leader_epoch=0, now_ms=NOW)
    with pytest.raises(OffsetOutOfRange):
        log.increment_log_start_offset(3)
    log.increment_log_start_offset(1)
    log.increment_log_start_offset(0)
    assert values_of(read_all(log)) == [b"b", b"c"]
    assert log.leader_epochs.entries == [(0, 1)]


def test_all_segments_may_go(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    log.delete_segments(list(log.segments), NOW).run()
    assert (log.log_start_offset, log.end_offset, log.size) == (3, 3, 0)
    assert append(log, batch(b"a")) == [3]


# -- flushing


def test_a_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    assert log.recovery_point == 0
    flush = log.start_flush()
    append(log, batch(b"later"))
    flush.sync()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 3


def test_a_flush_says_nothing_of_what_was_cut_off_meanwhile(log: Log) -> None:
    append(log, batch(), batch(), batch())
    flush = log.start_flush()
    log.truncate_to(1, NOW)
    append(log, batch(), batch())
    flush.sync()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 0


def test_after_a_failed_sync_the_log_takes_no_more(tmp_path: Path, disk: FaultyFileSystem) -> None:
    log = make_log(tmp_path / "topic-0", file_system=disk)
    append(log, batch(b"a"))
    disk.fsync_error = OSError(errno.EIO, "Input/output error")
    flush = log.start_flush()
    flush.sync()
    disk.fsync_error = None
    with pytest.raises(LogFailure):
        log.finish_flush(flush, NOW)
    assert log.recovery_point == 0
    (result,) = log.append([batch(b"b")], leader_epoch=0, now_ms=NOW)
    assert isinstance(result, LogFailure)
    assert values_of(read_all(log)) == [b"a"]


def test_when_a_flush_is_due(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0")
    assert not log.flush_due(NOW)
    append(log, batch(), batch())
    assert not log.flush_due(NOW + 10**9)
    log.config = LogConfig(flush_messages=2)
    assert log.flush_due(NOW)
    flush_log(log)
    assert not log.flush_due(NOW)
    log.config = LogConfig(flush_ms=1000)
    append(log, batch())
    assert not log.flush_due(NOW + 999)
    assert log.flush_due(NOW + 1000)
    log.config = LogConfig(segment_bytes=100)
    append(log, batch())
    assert log.flush_due(NOW)

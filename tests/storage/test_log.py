"""barnabas.storage.log: appending, reading, rolling and flushing one partition's log."""

import dataclasses
import errno
import os
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import LogFailure, OffsetOutOfRange, OutOfOrderSequence
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.segment import Segment
from barnabas.storage.write import AppendResult
from tests.storage.support import (
    NOW,
    FaultyFileSystem,
    append,
    batch,
    bytes_of,
    flush_log,
    found_by_timestamp,
    found_max_timestamp,
    idempotent,
    make_log,
    read_all,
    records_in,
    refusal,
    small_segments,
    transactional,
    values_of,
)
from tests.support.compiled import replaces_a_method

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


# -- appending


def test_offsets_are_assigned_in_order(log: Log) -> None:
    assert append(log, batch(b"a", b"b"), batch(b"c"), leader_epoch=4) == [0, 2]
    assert append(log, batch(b"d"), leader_epoch=4) == [3]
    assert [(record.offset, record.value) for record in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert read_header(bytes_of(log.read(3, 1000, upper_bound=4))).partition_leader_epoch == 4


def test_one_bad_record_set_does_not_affect_the_others(log: Log) -> None:
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
        found = found_by_timestamp(log, timestamp)
        assert (found and (found.offset, found.timestamp)) == expected
    latest = found_max_timestamp(log)
    assert latest is not None
    assert (latest.offset, latest.timestamp) == (9, 900)


def test_the_time_of_deleted_records_is_not_found(log: Log) -> None:
    append(log, batch(b"a", timestamp=500), batch(b"b", timestamp=400), batch(b"c", timestamp=450))
    log.increment_log_start_offset(1)
    found = found_by_timestamp(log, 300)
    assert found is not None
    assert found.offset == 1
    assert found_by_timestamp(log, 500) is None


def test_a_log_without_records_has_no_times(log: Log) -> None:
    assert found_by_timestamp(log, 0) is None
    assert found_max_timestamp(log) is None


def test_the_epoch_comes_with_the_offset(log: Log) -> None:
    append(log, batch(timestamp=100), leader_epoch=2)
    found = found_by_timestamp(log, 50)
    assert found is not None
    assert found.leader_epoch == 2


# -- transactions


def marker(control_type: ControlType, producer_id: int = 5) -> memoryview:
    return memoryview(
        build_end_transaction_marker(
            control_type, timestamp=NOW, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        )
    )


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


def test_readers_learn_of_aborted_transactions(tmp_path: Path) -> None:
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


def test_one_call_rolls_a_few_segments_only(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100))
    batches = [batch() for _ in range(20)]
    assert len(log.append(batches, leader_epoch=0, now_ms=NOW)) == 5
    assert append(log, *batches[5:]) == list(range(5, 20))
    assert len(log.segments) == 20


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


# -- deleting


def test_records_are_deleted_up_to_the_high_watermark(log: Log) -> None:
    append(log, batch(b"a"), batch(b"b"))
    log.append([batch(b"c")], leader_epoch=0, now_ms=NOW)
    with pytest.raises(OffsetOutOfRange):
        log.increment_log_start_offset(3)
    log.increment_log_start_offset(1)
    log.increment_log_start_offset(0)
    assert values_of(read_all(log)) == [b"b", b"c"]
    assert log.leader_epochs.entries == [(0, 1)]


def test_all_segments_may_be_deleted(tmp_path: Path) -> None:
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


def test_a_flush_of_very_many_segments_takes_several_steps(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 120)
    synced = []
    while log.recovery_point < log.end_offset:
        flush = log.start_flush()
        flush.sync()
        log.finish_flush(flush, NOW)
        synced.append(log.recovery_point)
        assert log.flush_due(NOW) == (log.recovery_point < log.segments.active.base_offset)
    assert synced == [50, 100, 120]
    assert log.finished == []


def test_a_flush_says_nothing_about_what_was_truncated_meanwhile(log: Log) -> None:
    append(log, batch(), batch(), batch())
    flush = log.start_flush()
    log.truncate_to(1, NOW)
    append(log, batch(), batch())
    flush.sync()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 0


def test_after_a_failed_sync_the_log_accepts_nothing(tmp_path: Path, disk: FaultyFileSystem) -> None:
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


@replaces_a_method
@pytest.mark.usefixtures("leaves_damage")
def test_after_a_write_that_failed_in_an_unforeseen_way_the_log_accepts_nothing(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unknown what the file contains; a restart finds out."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Segment, "index_batch", broken)
        with pytest.raises(ZeroDivisionError):
            append(log, batch())
    assert log.failed
    assert isinstance(refusal(log, batch()), LogFailure)

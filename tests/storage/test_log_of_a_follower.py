"""barnabas.storage.log in the hands of a follower: batches as its leader wrote them, and what has to be cut off."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.errors import CorruptRecords, RecordsError
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import LogFailure, OffsetsOutOfOrder
from barnabas.storage.file_names import DELETED
from barnabas.storage.filesystem import Buffer, FileSystem
from barnabas.storage.log import Log
from tests.storage.support import (
    NOW,
    FaultyFileSystem,
    append,
    batch,
    bytes_of,
    close_log,
    found_max_timestamp,
    idempotent,
    make_log,
    read_all,
    small_segments,
    transactional,
    values_of,
)

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


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
    data = memoryview(bytes_of(leader.read(0, 10_000, upper_bound=3)))
    third = len(data) // 3
    for left in (third - 1, 60, 1):  # a leader sends as many bytes as were asked for
        follower = make_log(tmp_path / f"follower-{left}")
        follower.append_as_follower(data[: 2 * third + left], now_ms=NOW)
        assert values_of(read_all(follower)) == [b"a", b"b"]
        with pytest.raises(RecordsError):  # but not less than one batch
            follower.append_as_follower(data[2 * third : 2 * third + left], now_ms=NOW)


def test_a_follower_keeps_what_came_before_a_damaged_batch(tmp_path: Path) -> None:
    leader = make_log(tmp_path / "leader")
    append(leader, batch(b"a"), batch(b"b"), batch(b"c"))
    data = bytearray(bytes_of(leader.read(0, 10_000, upper_bound=3)))
    data[-1] ^= 1
    follower = make_log(tmp_path / "follower")
    with pytest.raises(CorruptRecords):
        follower.append_as_follower(memoryview(data), now_ms=NOW)
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


# -- cutting off


def test_a_cut_behind_the_end_forgets_an_epoch_without_records(tmp_path: Path) -> None:
    log = make_log(tmp_path / "log")
    append(log, batch(b"a"), leader_epoch=3)
    log.assign_leader_epoch(3)
    log.assign_leader_epoch(5)
    assert log.leader_epochs.latest_epoch == 5
    log.truncate_to(1, NOW)
    assert (log.end_offset, log.leader_epochs.latest_epoch) == (1, 3)


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


def test_killed_while_segments_were_cut_off(tmp_path: Path) -> None:
    """What is left has no hole, also in a compacted log, where recovery keeps what follows a gap."""

    class Killed(FileSystem):
        left = 1

        def rename(self, source: str, target: str) -> None:
            if target.endswith(".log" + DELETED):
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
            super().rename(source, target)

    config = LogConfig(segment_bytes=100, cleanup_policy=frozenset({"compact"}))
    log = make_log(tmp_path / "topic-0", config, file_system=Killed())
    for number in range(4):
        append(log, batch(b"%d" % number))
    with pytest.raises(KeyboardInterrupt):
        log.truncate_to(1, NOW)
    log.drop_files()
    again = make_log(tmp_path / "topic-0", config, clean=False)
    assert values_of(read_all(again)) == [b"0", b"1", b"2"]


class NoRoomForNames(FileSystem):
    """A full disk: a longer name may need another block of the folder."""

    def __init__(self, refused: str) -> None:
        self.refused = refused

    def rename(self, source: str, target: str) -> None:
        if target.endswith(self.refused):
            raise NO_SPACE
        super().rename(source, target)


@pytest.mark.parametrize("refused", ["2.index.deleted", "2.log.deleted", "3.log.deleted", ".deleted"])
def test_a_full_disk_while_segments_are_cut_off(tmp_path: Path, refused: str) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), file_system=NoRoomForNames(refused))
    for number in range(4):
        append(log, batch(b"%d" % number))
    log.truncate_to(1, NOW).run()
    assert values_of(read_all(log)) == [b"0"]
    log.config = LogConfig()
    append(log, batch(b"a"), batch(b"b"), batch(b"c"), batch(b"d"))
    close_log(log)
    again = make_log(tmp_path / "topic-0")
    assert values_of(read_all(again)) == [b"0", b"a", b"b", b"c", b"d"]
    assert not any(name.endswith(DELETED) for name in os.listdir(tmp_path / "topic-0"))


def test_what_cannot_be_cut_off_stays(tmp_path: Path) -> None:
    class ReadOnly(NoRoomForNames):
        def unlink(self, path: str) -> None:
            if self.refused == DELETED:
                raise OSError(errno.EROFS, "Read-only file system")
            super().unlink(path)

    disk = ReadOnly("no file")
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), file_system=disk)
    for number in range(4):
        append(log, batch(b"%d" % number))
    disk.refused = DELETED
    with pytest.raises(OSError, match="Read-only"):
        log.truncate_to(1, NOW)
    assert values_of(read_all(log)) == [b"0", b"1", b"2", b"3"]
    disk.refused = "no file"
    log.truncate_to(1, NOW).run()
    assert values_of(read_all(log)) == [b"0"]
    assert sorted(path.name[-5:] for path in (tmp_path / "topic-0").glob("*.log")) == ["0.log", "1.log"]


def test_truncation_undoes_what_producers_did(log: Log) -> None:
    append(log, idempotent(0), idempotent(1), transactional(2))
    log.truncate_to(1, NOW)
    assert log.last_stable_offset == 1
    assert append(log, idempotent(1)) == [1]


def test_truncation_forgets_later_times(log: Log) -> None:
    append(log, batch(timestamp=100), batch(timestamp=900), batch(timestamp=200))
    log.truncate_to(1, NOW)
    latest = found_max_timestamp(log)
    assert latest is not None
    assert latest.timestamp == 100


def test_truncation_beyond_the_end_does_nothing(log: Log) -> None:
    append(log, batch(b"a"))
    log.truncate_to(1, NOW)
    assert values_of(read_all(log)) == [b"a"]


def test_starting_over_at_an_offset(tmp_path: Path) -> None:
    log = small_segments(tmp_path, 3)
    log.truncate_fully_and_start_at(7, NOW).run()
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (7, 7, 7)
    assert log.leader_epochs.entries == []
    assert append(log, batch(b"a")) == [7]
    assert values_of(read_all(log)) == [b"a"]


def three_segments_on(disk: FaultyFileSystem, tmp_path: Path) -> Log:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), file_system=disk)
    for number in range(3):
        append(log, batch(b"%d" % number))
    return log


def test_starting_over_at_an_offset_on_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    disk = FaultyFileSystem()
    log = three_segments_on(disk, tmp_path)
    disk.open_error = NO_SPACE
    with pytest.raises(OSError, match="No space"):
        log.truncate_fully_and_start_at(7, NOW)
    assert values_of(read_all(log)) == [b"0", b"1", b"2"]
    disk.open_error = None
    log.truncate_fully_and_start_at(7, NOW).run()
    assert append(log, batch(b"a")) == [7]
    assert values_of(read_all(log)) == [b"a"]


def test_killed_between_the_new_segment_and_the_removal_of_the_others(tmp_path: Path) -> None:
    """The log is as it was before, and its follower truncates it again."""
    small_segments(tmp_path, 3).drop_files()
    (tmp_path / "topic-0" / f"{7:020d}.log").touch()
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), clean=False)
    assert values_of(read_all(log)) == [b"0", b"1", b"2"]
    assert log.end_offset == 3
    log.truncate_fully_and_start_at(7, NOW).run()
    assert append(log, batch(b"a")) == [7]


def test_truncation_to_the_start_takes_no_space(tmp_path: Path) -> None:
    disk = FaultyFileSystem()
    log = three_segments_on(disk, tmp_path)
    disk.open_error = disk.write_error = NO_SPACE
    log.truncate_to(0, NOW).run()
    assert (log.log_start_offset, log.end_offset, len(log.segments)) == (0, 0, 1)
    disk.open_error = disk.write_error = None
    assert append(log, batch(b"a")) == [0]
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

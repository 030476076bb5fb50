"""barnabas.storage.log_directory: many logs, one lock, checkpoints, and the mark of a clean stop."""

import errno
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.checkpoints import read_offsets
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import DirectoryLocked, LogFailure, WrongDirectory
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log_directory import LogDirectory, PendingCheckpoint
from tests.storage.support import (
    NOW,
    FaultyFileSystem,
    append,
    batch,
    bytes_of,
    flush_log,
    read_all,
    records_in,
    values_of,
)
from tests.support.compiled import replaces_a_method

A, B = TopicPartition("a", 0), TopicPartition("b", 3)
TOPIC_ID = uuid.UUID("cac1115d-2cec-44f1-b15f-35b5969a9478")


def open_directory(path: Path, *, file_system: FileSystem | None = None, cluster_id: str | None = None) -> LogDirectory:
    return LogDirectory(
        str(path),
        node_id=1,
        cluster_id=cluster_id,
        config_of=lambda topic: LogConfig(segment_bytes=100 if topic == "b" else 1 << 30),
        now_ms=NOW,
        file_system=file_system,
    )


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    directory = open_directory(tmp_path / "data")
    for partition in (A, B):
        log = directory.create_log(partition, TOPIC_ID, LogConfig(), NOW)
        append(log, batch(b"1"), batch(b"2"), batch(b"3"))
    return directory


def reopen(directory: LogDirectory) -> LogDirectory:
    return open_directory(Path(directory.path))


def test_a_new_directory_says_whose_it_is(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "new" / "data", cluster_id="cluster")
    assert (directory.properties.cluster_id, directory.properties.node_id) == ("cluster", 1)
    assert (tmp_path / "new" / "data" / "meta.properties").exists()
    directory_id = directory.properties.directory_id
    directory.close()
    assert reopen(directory).properties == ("cluster", 1, directory_id)


def test_it_is_not_opened_for_another_node_or_cluster(directory: LogDirectory) -> None:
    directory.close()
    with pytest.raises(WrongDirectory, match="node 1"):
        LogDirectory(directory.path, node_id=2, config_of=lambda topic: LogConfig(), now_ms=NOW)
    with pytest.raises(WrongDirectory, match="cluster"):
        open_directory(Path(directory.path), cluster_id="another")
    reopen(directory)


def test_it_is_locked_within_this_process(directory: LogDirectory) -> None:
    with pytest.raises(DirectoryLocked, match="in use"):
        reopen(directory)
    directory.close()
    reopen(directory)


def test_it_is_locked_against_other_processes(directory: LogDirectory) -> None:
    program = f"""
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.log_directory import LogDirectory, PendingCheckpoint
try:
    LogDirectory({directory.path!r}, node_id=1, config_of=lambda topic: LogConfig(), now_ms=0)
except DirectoryLocked:
    print("locked")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "locked\n"


def test_a_clean_stop_and_start(directory: LogDirectory) -> None:
    directory.close(broker_epoch=5)
    assert (Path(directory.path) / ".kafka_cleanshutdown").exists()
    again = reopen(directory)
    assert again.was_clean
    assert not (Path(directory.path) / ".kafka_cleanshutdown").exists()
    assert set(again.logs) == {A, B}
    for log in again.logs.values():
        assert values_of(read_all(log)) == [b"1", b"2", b"3"]
        assert (log.topic_id, log.high_watermark, log.recovery_point) == (TOPIC_ID, 3, 3)
    assert len(again.logs[B].segments) == 1
    append(again.logs[B], batch(b"4"))
    assert len(again.logs[B].segments) == 2


def test_a_crash_and_a_start(directory: LogDirectory) -> None:
    directory.abandon()
    again = reopen(directory)
    assert not again.was_clean
    for log in again.logs.values():
        assert values_of(read_all(log)) == [b"1", b"2", b"3"]


def test_checkpoints(directory: LogDirectory) -> None:
    log = directory.logs[A]
    flush_log(log)
    append(log, batch(b"4"))
    log.increment_log_start_offset(2)
    directory.start_checkpoint().write()
    path = directory.path
    assert read_offsets(f"{path}/recovery-point-offset-checkpoint") == {A: 3, B: 0}
    assert read_offsets(f"{path}/replication-offset-checkpoint") == {A: 4, B: 3}
    assert read_offsets(f"{path}/log-start-offset-checkpoint") == {A: 2}
    directory.abandon()
    again = reopen(directory).logs[A]
    assert (again.log_start_offset, again.high_watermark, again.recovery_point) == (2, 4, 3)


def test_an_older_checkpoint_never_replaces_a_newer_one(directory: LogDirectory) -> None:
    directory.logs[A].update_high_watermark(3)
    older = directory.start_checkpoint()
    directory.logs[A].increment_log_start_offset(2)
    directory.start_checkpoint().write()
    older.write()
    assert read_offsets(f"{directory.path}/log-start-offset-checkpoint") == {A: 2}


def test_many_threads_may_write_checkpoints(directory: LogDirectory) -> None:
    directory.logs[A].update_high_watermark(3)
    checkpoints = []
    for offset in (1, 2, 3):
        directory.logs[A].increment_log_start_offset(offset)
        checkpoints += [directory.start_checkpoint() for _ in range(5)]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(PendingCheckpoint.write, reversed(checkpoints)):
            pass
    assert read_offsets(f"{directory.path}/log-start-offset-checkpoint") == {A: 3}


@pytest.mark.usefixtures("leaves_damage")
@pytest.mark.parametrize("name", ["recovery-point", "replication", "log-start"])
def test_a_damaged_checkpoint_is_ignored(directory: LogDirectory, name: str) -> None:
    directory.close()
    (Path(directory.path) / f"{name}-offset-checkpoint").write_text("nonsense")
    assert values_of(read_all(reopen(directory).logs[A])) == [b"1", b"2", b"3"]


@pytest.mark.usefixtures("leaves_damage")
def test_a_lost_topic_id_counts_as_missing(directory: LogDirectory) -> None:
    directory.close()
    (Path(directory.path) / "a-0" / "partition.metadata").write_bytes(b"")
    assert reopen(directory).logs[A].topic_id is None


def test_a_topic_id_that_was_lost_is_written_again_for_whoever_creates_the_partition(directory: LogDirectory) -> None:
    directory.close()
    (Path(directory.path) / "a-0" / "partition.metadata").unlink()
    again = reopen(directory)
    log = again.create_log(A, TOPIC_ID, LogConfig(), NOW)
    assert log.topic_id == TOPIC_ID
    assert values_of(read_all(log)) == [b"1", b"2", b"3"]
    again.abandon()
    assert reopen(again).logs[A].topic_id == TOPIC_ID


def test_folders_that_are_not_partitions_are_left_alone(directory: LogDirectory) -> None:
    (Path(directory.path) / "lost+found").mkdir()
    (Path(directory.path) / "notes-0").write_text("a file")
    directory.close()
    assert set(reopen(directory).logs) == {A, B}


def test_a_partition_is_created_once(directory: LogDirectory) -> None:
    assert directory.create_log(A, uuid.uuid4(), LogConfig(), NOW) is directory.logs[A]
    assert directory.logs[A].topic_id == TOPIC_ID


def test_a_partition_that_cannot_be_created_leaves_nothing(tmp_path: Path) -> None:
    disk = FaultyFileSystem()
    directory = open_directory(tmp_path / "data", file_system=disk)
    disk.open_error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(LogFailure):
        directory.create_log(A, TOPIC_ID, LogConfig(), NOW)
    assert not (tmp_path / "data" / "a-0").exists()
    disk.open_error = None
    append(directory.create_log(A, TOPIC_ID, LogConfig(), NOW), batch(b"1"))


def test_a_deleted_partition_can_be_created_again_at_once(directory: LogDirectory) -> None:
    held = directory.logs[A].read(0, 1000, upper_bound=3)
    pending = directory.delete_log(A)
    assert os.path.isdir(pending.path)
    log = directory.create_log(A, uuid.uuid4(), LogConfig(), NOW)
    assert log.end_offset == 0
    pending.run()
    assert not os.path.exists(pending.path)
    assert values_of(records_in(bytes_of(held))) == [b"1", b"2", b"3"]


def test_a_log_inherits_nothing_from_a_deleted_one_of_its_name(directory: LogDirectory) -> None:
    former = directory.logs[A]
    flush_log(former)
    former.increment_log_start_offset(2)
    former.first_dirty_offset = 1
    directory.start_checkpoint().write()
    directory.delete_log(A).run()
    is_created_again(directory)


def test_a_log_inherits_nothing_from_one_that_was_deleted_before_a_crash(directory: LogDirectory) -> None:
    directory.logs[A].increment_log_start_offset(2)
    directory.start_checkpoint().write()
    directory.delete_log(A).run()
    directory.abandon()
    is_created_again(reopen(directory))


def test_a_log_inherits_nothing_from_a_checkpoint_that_is_written_late(directory: LogDirectory) -> None:
    directory.logs[A].increment_log_start_offset(2)
    checkpoint = directory.start_checkpoint()
    directory.delete_log(A).run()
    is_created_again(directory, checkpoint)


def test_a_log_inherits_nothing_from_one_that_was_set_aside(directory: LogDirectory, leaves_damage: None) -> None:
    directory.logs[A].increment_log_start_offset(2)
    directory.start_checkpoint().write()
    directory.set_aside(A)
    is_created_again(directory)


def is_created_again(directory: LogDirectory, checkpoint: PendingCheckpoint | None = None) -> None:
    log = directory.create_log(A, uuid.uuid4(), LogConfig(), NOW)
    append(log, batch(b"new"))
    log.high_watermark = 0
    if checkpoint is not None:
        checkpoint.write()
    directory.abandon()
    again = reopen(directory).logs[A]
    assert values_of(read_all(again)) == [b"new"]
    known = again.log_start_offset, again.high_watermark, again.recovery_point, again.first_dirty_offset
    assert known == (0, 0, 0, None)


def test_a_log_of_a_new_name_needs_no_checkpoint(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "data")
    directory.create_log(A, TOPIC_ID, LogConfig(), NOW)
    assert not os.path.exists(f"{directory.path}/recovery-point-offset-checkpoint")
    directory.start_checkpoint().write()
    directory.delete_log(A).run()
    directory.start_checkpoint().write()
    before = os.stat(f"{directory.path}/recovery-point-offset-checkpoint").st_ino
    directory.create_log(A, TOPIC_ID, LogConfig(), NOW)
    assert os.stat(f"{directory.path}/recovery-point-offset-checkpoint").st_ino == before


def test_a_deletion_that_a_stop_interrupted_is_finished(directory: LogDirectory) -> None:
    pending = directory.delete_log(A)
    directory.close()
    assert set(reopen(directory).logs) == {B}
    assert not os.path.exists(pending.path)


def test_a_truncated_log_is_recovered_from_there(directory: LogDirectory) -> None:
    flush_log(directory.logs[A])
    directory.start_checkpoint().write()
    directory.truncate_log(A, 1, NOW).run()
    assert read_offsets(f"{directory.path}/recovery-point-offset-checkpoint")[A] == 1
    assert values_of(read_all(directory.logs[A])) == [b"1"]


def test_a_full_disk_before_a_truncation_changes_nothing(tmp_path: Path) -> None:
    disk = FaultyFileSystem()
    directory = open_directory(tmp_path / "data", file_system=disk)
    log = directory.create_log(A, TOPIC_ID, LogConfig(), NOW)
    append(log, batch(b"1"), batch(b"2"), batch(b"3"), batch(b"4"))
    flush_log(log)
    log.increment_log_start_offset(2)
    directory.start_checkpoint().write()
    for truncate in directory.truncate_log, directory.truncate_log_fully:
        disk.write_error = OSError(errno.ENOSPC, "No space left on device")
        with pytest.raises(OSError, match="No space"):
            truncate(A, 1, NOW)
        assert (log.log_start_offset, log.high_watermark, log.recovery_point) == (2, 4, 4)
        assert values_of(read_all(log)) == [b"3", b"4"]
    disk.write_error = None
    directory.truncate_log_fully(A, 1, NOW).run()
    append(log, batch(b"new"))
    directory.abandon()
    again = reopen(directory).logs[A]
    assert values_of(read_all(again)) == [b"new"]
    assert (again.log_start_offset, again.high_watermark, again.recovery_point) == (1, 1, 1)


def test_a_log_that_starts_over_forgets_a_later_start(directory: LogDirectory) -> None:
    directory.logs[A].increment_log_start_offset(2)
    directory.start_checkpoint().write()
    directory.truncate_log_fully(A, 1, NOW).run()
    append(directory.logs[A], batch(b"new"))
    directory.abandon()
    again = reopen(directory).logs[A]
    assert (again.log_start_offset, again.end_offset) == (1, 2)
    assert values_of(read_all(again)) == [b"new"]


def test_without_a_last_sync_the_stop_was_not_clean(tmp_path: Path) -> None:
    disk = FaultyFileSystem()
    directory = open_directory(tmp_path / "data", file_system=disk)
    append(directory.create_log(A, TOPIC_ID, LogConfig(), NOW), batch(b"1"))
    error = OSError(errno.EIO, "Input/output error")
    fsync = disk.fsync
    failed = False

    def fsync_failing_once(fd: int) -> None:
        nonlocal failed
        if not failed:
            failed = True
            raise error
        fsync(fd)

    disk.fsync = fsync_failing_once  # type: ignore[method-assign]
    directory.close()
    again = reopen(directory)
    assert not again.was_clean
    assert values_of(read_all(again.logs[A])) == [b"1"]


@replaces_a_method
def test_one_log_that_cannot_be_closed_does_not_keep_the_others_open(
    directory: LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    good = directory.logs[B]
    monkeypatch.setattr(directory.logs[A], "start_close", broken)
    directory.close()
    assert good.recovery_point == 3
    again = reopen(directory)
    assert not again.was_clean
    assert values_of(read_all(again.logs[A])) == [b"1", b"2", b"3"]

"""barnabas.storage.cleaner.cleaner: a compaction that is interrupted, or fails, while the log stays in use."""

import errno
import os
import threading
from pathlib import Path

import pytest

from barnabas.storage.cleaner.cleaner import RETRY_BACKOFF_MS, Cleaner, CleanerConfig
from barnabas.storage.cleaner.work import here
from barnabas.storage.config import LogConfig
from barnabas.storage.file_names import CLEANED, SWAP
from barnabas.storage.log import Log
from barnabas.storage.log_loader import KnownOffsets
from barnabas.storage.retention import apply_retention
from tests.storage.cleaner.support import (
    cleaning_of,
    compacted_log,
    contents,
    put,
)
from tests.storage.support import NOW, PARTITION, FaultyFileSystem, flush_log, make_log


def close_segment(log: Log) -> None:
    log.roll(NOW)
    flush_log(log)


# -- the log is in use meanwhile


def dirty(tmp_path: Path) -> Log:
    """A log of ten segments, all to be compacted, each into one of its own."""
    log = compacted_log(tmp_path, segment_bytes=100)
    for number in range(10):
        put(log, (b"%d" % (number % 4), b"%d" % number))
    close_segment(log)
    return log


def latest(log: Log) -> dict[bytes | None, bytes | None]:
    return dict(contents(log))


# Six of the ten lose something, and three steps each bring them in.
STEPS = 1 + 3 * 6
LATEST = {b"0": b"8", b"1": b"9", b"2": b"6", b"3": b"7"}


def leftovers(tmp_path: Path) -> list[str]:
    return [name for name in os.listdir(tmp_path / "topic-0") if name.endswith((CLEANED, SWAP))]


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_it_can_be_left_at_any_step(tmp_path: Path, steps: int) -> None:
    log = dirty(tmp_path)
    work = cleaning_of(log).steps()
    for _, step in zip(range(steps), work, strict=False):
        step()
    work.close()  # type: ignore[attr-defined]

    assert latest(log) == LATEST
    assert log.first_dirty_offset in (None, 10)
    log.drop_files()
    reopened = make_log(tmp_path / "topic-0", log.config, clean=False)
    assert latest(reopened) == LATEST
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_the_log_may_be_truncated_at_any_step(tmp_path: Path, steps: int) -> None:
    log = dirty(tmp_path)
    cleaning = cleaning_of(log)
    for number, step in enumerate(cleaning.steps(), 1):
        step()
        if number == steps:
            log.truncate_to(5, NOW).run()
            put(log, (b"new", b"1"))

    assert cleaning.stats is None
    expected = {b"0": b"4", b"1": b"1", b"2": b"2", b"3": b"3", b"new": b"1"}
    known = {key: value for key, value in expected.items() if key in latest(log)}
    assert latest(log) == known
    assert latest(log)[b"new"] == b"1"
    log.drop_files()
    reopened = make_log(tmp_path / "topic-0", log.config, clean=False)
    assert latest(reopened) == known


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_segments_may_be_deleted_at_any_step(tmp_path: Path, steps: int) -> None:
    log = dirty(tmp_path)
    cleaning = cleaning_of(log)
    for number, step in enumerate(cleaning.steps(), 1):
        step()
        if number == steps:
            log.increment_log_start_offset(5)
            deletion = apply_retention(log, NOW)
            assert deletion is not None
            deletion.run()

    assert latest(log) == LATEST
    assert log.log_start_offset == 5
    log.drop_files()
    known = KnownOffsets(log_start_offset=5)
    assert latest(make_log(tmp_path / "topic-0", log.config, clean=False, known=known)) == LATEST


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_more_may_be_appended_at_any_step(tmp_path: Path, steps: int) -> None:
    log = dirty(tmp_path)
    cleaning = cleaning_of(log)
    for number, step in enumerate(cleaning.steps(), 1):
        step()
        if number == steps:
            put(log, (b"1", b"new"))
            close_segment(log)

    assert cleaning.stats is not None
    assert log.first_dirty_offset == 10
    assert latest(log) == {**LATEST, b"1": b"new"}


@pytest.mark.parametrize("started", [False, True])
def test_the_log_may_be_deleted_and_another_made_in_its_place(tmp_path: Path, started: bool) -> None:
    log = dirty(tmp_path)
    steps = cleaning_of(log).steps()
    if started:
        next(steps)()
    log.drop_files()
    os.rename(tmp_path / "topic-0", tmp_path / "deleted")
    another = dirty(tmp_path)
    before = contents(another)

    for step in steps:
        step()

    assert contents(another) == before
    assert leftovers(tmp_path) == []


# -- stopping and failing


def test_a_cleaning_that_is_told_to_stop_stops(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = cleaning_of(log)
    done = 0
    for step in cleaning.steps():
        step()
        done += 1
        cleaning.stop()
    assert done < 5
    assert cleaning.stats is None
    assert latest(log) == LATEST
    assert leftovers(tmp_path) == []


def test_a_slow_cleaning_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = cleaning_of(log, io_max_bytes_per_second=0.001)
    step = next(iter(cleaning.steps()))
    thread = threading.Thread(target=step)
    thread.start()
    cleaning.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    disk = FaultyFileSystem()
    disk.write_error = OSError(errno.ENOSPC, "No space left on device")
    cleaner = Cleaner({PARTITION: log}, CleanerConfig(), disk, here)
    cleaning = cleaner.choose(NOW)
    assert cleaning is not None
    for step in cleaning.steps():
        step()

    assert cleaning.stats is None
    assert latest(log) == LATEST
    assert leftovers(tmp_path) == []


def test_a_log_whose_cleaning_failed_is_not_retried_at_once(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaner = Cleaner({PARTITION: log}, start_work=here)
    cleaning = cleaner.choose(NOW)
    assert cleaning is not None
    cleaning.stop()
    for step in cleaning.steps():
        step()
    assert cleaner.choose(NOW + RETRY_BACKOFF_MS - 1) is None
    assert cleaner.choose(NOW + RETRY_BACKOFF_MS) is not None


def test_a_log_whose_cleaning_failed_does_not_wait_for_a_clock_that_was_put_back(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaner = Cleaner({PARTITION: log}, start_work=here)
    cleaner.given_up_ms[log] = NOW + 24 * 3_600_000
    assert cleaner.choose(NOW) is not None


def test_a_failed_sync_of_the_swap_keeps_the_old_segments_readable(tmp_path: Path) -> None:
    class NoFolderSync(FaultyFileSystem):
        fails = False

        def fsync_directory(self, path: str) -> None:
            if self.fails:
                raise OSError(errno.EIO, "Input/output error")

    disk = NoFolderSync()
    log = compacted_log(tmp_path, file_system=disk)
    put(log, (b"a", b"1"), (b"a", b"2"))
    close_segment(log)
    disk.fails = True
    for step in cleaning_of(log).steps():
        step()

    assert log.failed
    assert latest(log) == {b"a": b"2"}
    log.drop_files()
    assert latest(make_log(tmp_path / "topic-0", LogConfig(), clean=False)) == {b"a": b"2"}

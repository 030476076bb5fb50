"""storage.cleaner.work: a compaction in a process of its own."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from storage.cleaner.cleanable import cleanable_section
from storage.cleaner.cleaner import RETRY_BACKOFF_MS, Cleaner
from storage.cleaner.plan import CleaningPlan, plan_cleaning
from storage.cleaner.rewrite import CleanedSegment, CleaningStats
from storage.cleaner.work import in_child
from storage.errors import CleaningAborted
from storage.file_names import CLEANED
from storage.filesystem import FileSystem
from storage.log import Log
from tests.storage.cleaner.support import compacted_log, contents, put
from tests.storage.support import NOW, PARTITION, flush_log

SLOW = 0.001  # bytes a second


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = compacted_log(tmp_path, segment_bytes=100)
    for number in range(4):
        put(log, (b"%d" % (number % 2), b"%d" % number))
    log.roll(NOW)
    flush_log(log)
    return log


def plan_for(log: Log) -> CleaningPlan:
    return plan_cleaning(log, cleanable_section(log, NOW), NOW, dedupe_buffer_size=10**6)


def leftovers(log: Log) -> list[str]:
    return [name for name in os.listdir(log.folder) if name.endswith(CLEANED)]


def test_a_log_is_compacted_by_another_process(log: Log) -> None:
    cleaning = Cleaner({PARTITION: log}).choose(NOW)
    assert cleaning is not None
    for step in cleaning.steps():
        step()
    assert cleaning.stats is not None
    assert (cleaning.stats.records_read, cleaning.stats.records_kept) == (4, 2)
    assert contents(log) == [(b"0", b"2"), (b"1", b"3")]
    assert leftovers(log) == []


def test_parts_come_as_they_are_done(log: Log) -> None:
    work = in_child(plan_for(log), float("inf"), FileSystem())
    parts = [work.next() for _ in range(3)]
    assert [type(part) for part in parts] == [CleanedSegment, CleanedSegment, CleaningStats]
    for name in leftovers(log):
        os.unlink(os.path.join(log.folder, name))


def test_it_can_be_stopped(log: Log) -> None:
    work = in_child(plan_for(log), SLOW, FileSystem())
    ended: list[Exception] = []

    def run() -> None:
        try:
            work.next()
        except CleaningAborted as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    work.stop()
    thread.join(60)
    assert [str(error) for error in ended] == ["told to stop"]
    assert leftovers(log) == []


def test_it_can_be_stopped_before_it_begins(log: Log) -> None:
    work = in_child(plan_for(log), SLOW, FileSystem())
    work.stop()
    with pytest.raises(CleaningAborted, match="told to stop"):
        work.next()


@pytest.mark.usefixtures("leaves_damage")
def test_what_goes_wrong_there_goes_wrong_here(log: Log) -> None:
    with open(log.segments.first.path, "r+b") as file:
        file.seek(65)
        file.write(b"\xff")
    cleaner = Cleaner({PARTITION: log})
    cleaning = cleaner.choose(NOW)
    assert cleaning is not None
    for step in cleaning.steps():
        step()
    assert cleaning.stats is None
    assert cleaner.uncleanable == {log}


def test_the_process_ends_with_the_broker(log: Log) -> None:
    """Nobody else may write where the next broker will compact."""
    process = subprocess.Popen(
        [sys.executable, "-m", "storage.cleaner.work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    pickle.dump((plan_for(log), SLOW), process.stdin)
    process.stdin.close()
    assert process.wait(60) == 1
    for name in leftovers(log):
        os.unlink(os.path.join(log.folder, name))


def test_a_process_that_is_killed_costs_no_more_than_its_work(log: Log) -> None:
    before = contents(log)
    children: set[int] = set()
    cleaner = Cleaner({PARTITION: log})
    cleaning = cleaner.choose(NOW)
    assert cleaning is not None
    original = subprocess.Popen.__init__

    def start_and_kill(self: subprocess.Popen[bytes], *arguments: object, **options: object) -> None:
        original(self, *arguments, **options)  # type: ignore[call-overload]
        children.add(self.pid)
        os.kill(self.pid, signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", start_and_kill)
        for step in cleaning.steps():
            step()

    assert len(children) == 1
    assert cleaning.stats is None
    assert contents(log) == before
    assert cleaner.choose(NOW + RETRY_BACKOFF_MS) is not None

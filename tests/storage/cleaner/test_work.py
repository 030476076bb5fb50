"""barnabas.storage.cleaner.work: a compaction in a process of its own."""

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from barnabas.storage.cleaner import work
from barnabas.storage.cleaner.cleanable import cleanable_section
from barnabas.storage.cleaner.cleaner import RETRY_BACKOFF_MS, Cleaner
from barnabas.storage.cleaner.plan import CleaningPlan, plan_cleaning
from barnabas.storage.cleaner.rewrite import CleanedSegment, CleaningStats
from barnabas.storage.cleaner.work import child_command, in_child
from barnabas.storage.errors import CleaningAborted
from barnabas.storage.file_names import CLEANED
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from tests.storage.cleaner.support import compacted_log, contents, put
from tests.storage.support import NOW, PARTITION, flush_log

SLOW = 0.001  # bytes per second


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
    assert [str(error) for error in ended] == ["stopped"]
    assert leftovers(log) == []


def test_it_can_be_stopped_before_it_begins(log: Log) -> None:
    work = in_child(plan_for(log), SLOW, FileSystem())
    work.stop()
    with pytest.raises(CleaningAborted, match="stopped"):
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
    assert set(cleaner.uncleanable) == {log}


def test_the_process_ends_with_the_broker(log: Log) -> None:
    """No other process may write where the next broker will compact."""
    process = subprocess.Popen(child_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    pickle.dump((plan_for(log), SLOW), process.stdin)
    process.stdin.close()
    assert process.wait(60) == 1
    for name in leftovers(log):
        os.unlink(os.path.join(log.folder, name))


def test_killing_the_process_loses_only_its_work(log: Log) -> None:
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

    with pytest.MonkeyPatch.context() as patch, capture_logs() as logged:
        patch.setattr(subprocess.Popen, "__init__", start_and_kill)
        for step in cleaning.steps():
            step()

    assert [(each["event"], each["log_level"]) for each in logged] == [("compaction failed", "error")]
    assert logged[0]["error"] == "the process exited with -9: no output"
    assert len(children) == 1
    assert cleaning.stats is None
    assert contents(log) == before
    assert cleaner.choose(NOW + RETRY_BACKOFF_MS) is not None


def test_a_process_that_cannot_start_is_logged_with_what_it_printed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_PROGRAM", "import no_such_module")
    cleaning = Cleaner({PARTITION: log}).choose(NOW)
    assert cleaning is not None
    with capture_logs() as logged:
        for step in cleaning.steps():
            step()
    assert [(each["event"], each["log_level"]) for each in logged] == [("compaction failed", "error")]
    assert logged[0]["error"].startswith("the process exited with 1: Traceback")
    assert logged[0]["error"].endswith("ModuleNotFoundError: No module named 'no_such_module'")


@pytest.mark.parametrize("on_the_path", ["", "the current directory", "another folder"])
def test_the_users_modules_do_not_replace_others(
    log: Log, on_the_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "of the user"
    for name in ("barnabas", "storage", "pickle", "contextlib", "threading"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise RuntimeError('this is not the one')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    if on_the_path == "another folder":
        (folder / "barnabas" / "__init__.py").unlink()
        (folder / "barnabas").rmdir()
    else:
        monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder) if on_the_path else "", *sys.path])
    test_a_log_is_compacted_by_another_process(log)


BROKER_THAT_IS_KILLED = """
import os, pickle, signal, subprocess, sys
from barnabas.storage.cleaner.work import in_child
from barnabas.storage.filesystem import FileSystem

original = subprocess.Popen.__init__

def start_and_die(self, *arguments, **options):
    original(self, *arguments, **options)
    print(self.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen.__init__ = start_and_die
in_child(pickle.load(sys.stdin.buffer), 1.0, FileSystem()).next()
"""


def test_a_broker_that_is_killed_while_the_process_starts_leaves_no_traceback(log: Log, tmp_path: Path) -> None:
    printed = tmp_path / "stderr"
    with printed.open("wb") as stderr:
        broker = subprocess.run(
            [sys.executable, "-c", BROKER_THAT_IS_KILLED],
            input=pickle.dumps(plan_for(log)),
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    assert broker.returncode == -signal.SIGKILL
    with contextlib.suppress(ProcessLookupError):  # it may have ended already
        child = os.pidfd_open(int(broker.stdout))
        select.select([child], [], [], 60)
        os.close(child)
    assert printed.read_bytes() == b""

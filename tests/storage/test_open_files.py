"""barnabas.storage.open_files: few descriptors for many files."""

import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path

from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import Handle, OpenFiles
from tests.storage.support import append, batch, bytes_of, make_log, read_all, records_in, values_of


class Holder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.used = True
        self.open = True

    def give_up_idle_handle(self) -> bool:
        if self.used:
            self.used = False
            return False
        self.open = False
        return True


def test_no_more_than_the_capacity_and_the_used_ones_stay() -> None:
    files = OpenFiles(FileSystem(), capacity=3)
    busy, idle, other = Holder("busy"), Holder("idle"), Holder("other")
    for holder in (busy, idle, other):
        files.admit(holder)
    idle.used = False
    files.admit(Holder("new"))
    assert (busy.open, idle.open, other.open) == (True, False, True)
    assert len(files) == 3


def test_a_holder_that_closed_its_file_makes_room() -> None:
    files = OpenFiles(FileSystem(), capacity=1)
    first, second = Holder("first"), Holder("second")
    files.admit(first)
    files.forget(first)
    files.admit(second)
    assert len(files) == 1
    assert first.open


def test_a_handle_closes_with_its_last_reference(tmp_path: Path) -> None:
    handle = Handle(FileSystem(), str(tmp_path / "file"), create=True)
    fd = handle.fileno()
    os.fstat(fd)
    del handle
    assert not os.path.exists(f"/proc/self/fd/{fd}")


def open_paths(folder: Path) -> list[str]:
    """The files in a folder that this process has open."""
    paths = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [path for path in paths if path.startswith(str(folder))]


def test_a_log_of_many_segments_needs_few_descriptors(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), max_open_files=4)
    values = [b"%d" % number for number in range(50)]
    for value in values:
        append(log, batch(value))
    assert len(log.segments) == 50
    assert values_of(read_all(log)) == values
    assert len(open_paths(tmp_path)) <= 4


def test_a_slice_outlives_its_segments_place_among_the_open_files(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0", LogConfig(segment_bytes=100), max_open_files=2)
    for number in range(10):
        append(log, batch(b"%d" % number))
    held = log.read(3, 1000, upper_bound=10)
    read_all(log)
    assert values_of(records_in(bytes_of(held))) == [b"3"]


def test_as_many_as_the_process_may_have_open_allow() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
        assert OpenFiles(FileSystem()).capacity == 150
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# More logs than files may be open: made, filled, closed in order, and opened again.
MANY_LOGS = """
import resource, sys, uuid
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.log_directory import LogDirectory
from tests.storage.support import NOW, append, batch

def opened():
    return LogDirectory(sys.argv[1], node_id=1, config_of=lambda topic: LogConfig(), now_ms=NOW)

directory = opened()
for number in range(200):
    append(directory.create_log(TopicPartition("t", number), uuid.uuid4(), LogConfig(), NOW), batch(b"a"))
directory.close()
directory = opened()
assert directory.was_clean
assert {log.end_offset for log in directory.logs.values()} == {1}
directory.close()
"""


def test_a_directory_may_have_more_logs_than_the_process_may_have_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", MANY_LOGS, str(tmp_path)], check=True)

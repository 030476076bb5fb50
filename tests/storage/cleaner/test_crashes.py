"""A crash at any moment of a compaction costs nothing.

The compaction runs once, on a file system that records every operation. Then the disk is restored as a crash after each
of them would leave it, and opened. Of every key the last record must be there, and nothing that never was.
"""

import os
import shutil
import uuid
from itertools import islice
from pathlib import Path

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.check import check_directory
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.work import here
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from tests.storage.cleaner.support import SETTINGS, NoSync, put, read_all, read_committed, transaction
from tests.storage.crash_filesystem import (
    MACHINE_CRASHES,
    PROCESS_CRASH,
    Crash,
    CrashFileSystem,
    Disk,
    scrambled_crashes,
)
from tests.storage.support import NOW, flush_log

A = TopicPartition("a", 0)
CONFIG = LogConfig(**{**SETTINGS, "segment_bytes": 450, "index_interval_bytes": 100, "delete_retention_ms": 0})


def open_directory(path: str, file_system: FileSystem) -> LogDirectory:
    return LogDirectory(path, node_id=1, config_of=lambda topic: CONFIG, now_ms=NOW, file_system=file_system)


class Compaction:
    """A log that was compacted twice, and how it went."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.file_system = CrashFileSystem(root)
        directory = open_directory(root, self.file_system)
        log = directory.create_log(A, uuid.uuid4(), CONFIG, NOW)
        self.originals: dict[int, tuple[bytes | None, bytes | None]] = {}
        for turn in range(2):
            self.fill(log, turn)
            directory.start_checkpoint().write()
            self.latest = latest(log)
            if turn == 0:
                self.compact(log)
        self.began = len(self.file_system.operations)
        self.compact(log)
        directory.start_checkpoint().write()
        directory.abandon()

    def fill(self, log: Log, turn: int) -> None:
        for number in range(8):
            put(log, (b"%d" % (number % 3), b"%d %d" % (turn, number)), (b"all", b"%d %d" % (turn, number)))
        put(log, (b"0", None) if turn == 0 else (b"1", None))
        transaction(log, 5, (b"2", b"aborted"), commit=False, sequence=turn)
        log.roll(NOW)
        flush_log(log)
        self.originals |= {record.offset: (record.key, record.value) for record in read_all(log)}

    def compact(self, log: Log) -> None:
        cleaning = Cleaner({A: log}, None, self.file_system, here).choose(NOW)
        assert cleaning is not None
        for step in cleaning.steps():
            step()
        assert cleaning.stats is not None

    def check(self, disk: Disk, target: str) -> None:
        disk.write_to(self.root, target)
        directory = open_directory(target, NoSync())
        log = directory.logs[A]
        log.update_high_watermark(log.end_offset)
        assert latest(log) == self.latest
        for record in read_all(log):
            assert self.originals[record.offset] == (record.key, record.value)
        assert log.end_offset == max(self.originals) + 2  # the last record, and the marker behind it
        put(log, (b"more", b"1"))
        assert latest(log) == {**self.latest, b"more": b"1"}
        directory.close()
        assert check_directory(target) == []
        assert not [name for name in os.listdir(log.folder) if name.endswith((".cleaned", ".swap", ".deleted"))]


def latest(log: Log) -> dict[bytes | None, bytes]:
    """The last value of every key that has one."""
    values = {record.key: record.value for record in read_committed(log)}
    return {key: value for key, value in values.items() if value is not None}


@pytest.fixture(scope="module")
def compaction(tmp_path_factory: pytest.TempPathFactory) -> Compaction:
    return Compaction(str(tmp_path_factory.mktemp("data")))


@pytest.mark.slow
@pytest.mark.parametrize("crash", [PROCESS_CRASH, *MACHINE_CRASHES, *scrambled_crashes(6)], ids=repr)
def test_the_last_record_of_every_key_is_there(compaction: Compaction, memory: Path, crash: Crash) -> None:
    last_seen = None
    for disk in islice(compaction.file_system.disks_after(crash), compaction.began, None):
        if disk == last_seen:
            continue
        last_seen = disk
        target = memory / "image"
        target.mkdir()
        compaction.check(disk, str(target))
        shutil.rmtree(target)

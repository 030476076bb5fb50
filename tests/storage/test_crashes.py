"""What was promised is there after a crash, whenever it comes.

A workload runs once, on a file system that records every operation. Then, for the moment after each of these operations
and for several ways in which a crash may treat what was not synced, the disk is made as the crash would leave it and
opened. Whatever the moment:

- What a finished flush covered is there.
- If only the process crashed, all that was appended is there.
- What is there is what was appended, at its offset, without gaps; nothing that was cut off has come back.
- The producers are known as the log knows them, every record can be found, and the log takes more.
"""

import copy
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.producer_state import AppendOrigin, ProducerState
from barnabas.storage.recovery import replay_segment
from barnabas.storage.retention import apply_retention
from tests.storage.crash_filesystem import (
    MACHINE_CRASHES,
    PROCESS_CRASH,
    Crash,
    CrashFileSystem,
    scrambled_crashes,
)
from tests.storage.support import NOW, append, batch, bytes_of, flush_log, read_all

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_bytes=1000)


class NoSync(FileSystem):
    """For the disks that are read only once."""

    def fsync(self, fd: int) -> None:
        pass

    def fsync_directory(self, path: str) -> None:
        pass


def open_directory(path: str, file_system: FileSystem) -> LogDirectory:
    return LogDirectory(path, node_id=1, config_of=lambda topic: CONFIG, now_ms=NOW, file_system=file_system)


@dataclass
class Promise:
    """What is known about a partition: every record that was appended and not truncated, and which of them are safe."""

    records: dict[int, bytes | None] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    flushed: int = 0
    durable: bool = False


@dataclass
class Moment:
    """The promises that hold once this many operations were done."""

    operations: int
    promises: dict[TopicPartition, Promise]
    closed: bool = False


class Workload:
    def __init__(self, root: str) -> None:
        self.file_system = CrashFileSystem(root)
        self.root = root
        self.moments = [Moment(0, {})]
        self.promises: dict[TopicPartition, Promise] = {}
        self.directory = open_directory(root, self.file_system)
        self.sequences: dict[TopicPartition, int] = {}
        self.counter = 0
        self._done()

    def _done(self, *, closed: bool = False) -> None:
        self.moments.append(Moment(len(self.file_system.operations), copy.deepcopy(self.promises), closed))

    def create(self, partition: TopicPartition) -> None:
        self.directory.create_log(partition, uuid.uuid4(), CONFIG, NOW)
        self.promises[partition] = Promise()
        self.sequences[partition] = 0
        self._done()

    def append(self, partition: TopicPartition, count: int = 1, *, transactional: bool = False) -> None:
        log = self.directory.logs[partition]
        for _ in range(count):
            self.counter += 1
            value = b"%d" % self.counter
            sequence = self.sequences[partition]
            fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence, "transactional": transactional}
            (offset,) = append(log, batch(value, b"also " + value, **fields))
            self.sequences[partition] = sequence + 2
            promise = self.promises[partition]
            promise.records |= {offset: value, offset + 1: b"also " + value}
            promise.end = log.end_offset
            self._done()

    def end_transaction(self, partition: TopicPartition) -> None:
        log = self.directory.logs[partition]
        marker = build_end_transaction_marker(
            ControlType.ABORT, timestamp=NOW, producer_id=5, producer_epoch=0, coordinator_epoch=0
        )
        (offset,) = append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)
        promise = self.promises[partition]
        promise.records[offset] = None
        promise.end = log.end_offset
        self._done()

    def flush(self, partition: TopicPartition) -> None:
        log = self.directory.logs[partition]
        flush_log(log)
        promise = self.promises[partition]
        promise.flushed = log.recovery_point
        promise.durable = True
        self._done()

    def checkpoint(self) -> None:
        self.directory.start_checkpoint().write()
        self._done()

    def retain(self, partition: TopicPartition) -> None:
        log = self.directory.logs[partition]
        pending = apply_retention(log, NOW)
        assert pending is not None
        self.promises[partition].start = log.log_start_offset
        self._done()
        pending.run()
        self._done()

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        self.directory.logs[partition].increment_log_start_offset(offset)
        self.promises[partition].start = offset
        self._done()

    def truncate(self, partition: TopicPartition, offset: int) -> None:
        pending = self.directory.truncate_log(partition, offset, NOW)
        log = self.directory.logs[partition]
        promise = self.promises[partition]
        promise.records = {at: value for at, value in promise.records.items() if at < log.end_offset}
        promise.end = log.end_offset
        promise.flushed = min(promise.flushed, log.end_offset)
        producer = log.producer_state.producers.get(5)
        self.sequences[partition] = producer.last_sequence + 1 if producer else 0
        self._done()
        pending.run()
        self._done()

    def delete(self, partition: TopicPartition) -> None:
        pending = self.directory.delete_log(partition)
        # From here on it may be there or not; when the folder is gone, it is not.
        self.promises[partition].durable = False
        self._done()
        pending.run()
        del self.promises[partition]
        self._done()

    def close_and_open(self) -> None:
        self.directory.close()
        for promise in self.promises.values():
            promise.flushed = promise.end
            promise.durable = True
        self._done(closed=True)
        self.directory = open_directory(self.root, self.file_system)
        self._done()

    def crash_and_open(self) -> None:
        self.directory.abandon()
        self.directory = open_directory(self.root, self.file_system)
        self._done()


def run(root: str) -> Workload:
    work = Workload(root)
    work.create(A)
    work.create(B)
    work.append(A, 5)
    work.append(B, 1, transactional=True)
    work.flush(A)
    work.append(A, 6)
    work.checkpoint()
    work.end_transaction(B)
    work.append(B, 3)
    work.flush(A)
    work.checkpoint()
    work.delete_records(A, 3)
    work.checkpoint()
    work.append(A, 8)
    work.retain(A)
    work.append(A, 2)
    work.flush(A)
    work.checkpoint()
    # What is cut off was on disk, checkpoint and all. What takes its place, over several segments, is not.
    work.truncate(A, work.promises[A].end - 17)
    work.append(A, 8)
    work.flush(A)
    work.checkpoint()
    work.close_and_open()
    work.append(A, 3)
    work.append(B, 3, transactional=True)
    work.crash_and_open()
    work.append(A, 3)
    work.end_transaction(B)
    work.flush(B)
    work.delete(B)
    work.append(A, 2)
    work.close_and_open()
    work.directory.close()
    return work


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    root = tmp_path_factory.mktemp("crashes") / "data"
    root.mkdir()
    return run(str(root))


def moments(work: Workload) -> Iterator[tuple[int, Moment, Moment]]:
    """Every number of operations, with the moment before and the one that the call under way was about to reach."""
    position = 0
    for count in range(len(work.file_system.operations) + 1):
        while position + 1 < len(work.moments) and work.moments[position + 1].operations <= count:
            position += 1
        yield count, work.moments[position], work.moments[min(position + 1, len(work.moments) - 1)]


@pytest.mark.slow
@pytest.mark.parametrize("crash", [PROCESS_CRASH, *MACHINE_CRASHES, *scrambled_crashes(5)], ids=repr)
def test_what_was_promised_is_there(work: Workload, crash: Crash, memory: Path) -> None:
    last_seen = None
    for disk, (count, before, after) in zip(work.file_system.disks_after(crash), moments(work), strict=True):
        if (disk, before) == last_seen:
            continue
        last_seen = disk, before
        image = str(memory / "image")
        disk.write_to(work.root, image)
        os.makedirs(image, exist_ok=True)
        directory = open_directory(image, NoSync())
        try:
            check(directory, before, after, everything=crash is PROCESS_CRASH)
            if before.closed and before.operations == count:
                assert directory.was_clean
        except AssertionError as error:
            error.add_note(f"{crash} after {count} operations, the last: {work.file_system.operations[:count][-3:]}")
            raise
        directory.abandon()
        shutil.rmtree(image)


def check(directory: LogDirectory, before: Moment, after: Moment, *, everything: bool) -> None:
    for partition, promise in before.promises.items():
        log = directory.logs.get(partition)
        if log is None:
            kept = promise.durable and after.promises.get(partition, Promise()).durable
            assert not kept, f"{partition} is gone"
            continue
        check_log(log, promise, after.promises.get(partition, promise), everything=everything)
    assert set(directory.logs) <= set(before.promises) | set(after.promises)


def check_log(log: Log, before: Promise, after: Promise, *, everything: bool) -> None:
    if before.durable or everything:
        assert log.log_start_offset <= max(before.start, after.start)
    assert log.end_offset <= max(before.end, after.end)
    assert log.end_offset >= min(before.flushed, after.flushed)
    if everything:
        assert log.end_offset >= min(before.end, after.end)
    check_contents(log, max(log.log_start_offset, before.start), before, after)
    check_producers(log)
    check_that_it_goes_on(log)


def check_contents(log: Log, start: int, before: Promise, after: Promise) -> None:
    records = {record.offset: record.value for record in read_all(log, start) if record.offset >= start}
    for offset in range(start, log.end_offset):
        value = records.get(offset)
        assert value in (before.records.get(offset), after.records.get(offset))
    for offset in records:
        header = read_header(bytes_of(log.read(offset, 1, upper_bound=log.end_offset)))
        assert header.base_offset <= offset <= header.last_offset


def check_producers(log: Log) -> None:
    state = ProducerState()
    for segment in log.segments:
        replay_segment(segment, state, 0, log.end_offset)
    for producer_id, producer in state.producers.items():
        known = log.producer_state.producers[producer_id]
        assert known.batches[-1:] == producer.batches[-1:]
        assert known.current_transaction_first_offset == producer.current_transaction_first_offset


def check_that_it_goes_on(log: Log) -> None:
    end_offset = log.end_offset
    assert append(log, batch(b"more")) == [end_offset]
    assert [record.value for record in read_all(log, end_offset)] == [b"more"]

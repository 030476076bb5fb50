"""A log against a model of it: a list of batches, a start and an end.

Hypothesis calls the log's methods in any order, with restarts and crashes in between, and compares what can be read.
"""

import os
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.retention import apply_retention
from barnabas.storage.write import AppendResult
from tests.storage.crash_filesystem import MACHINE_CRASHES, PROCESS_CRASH, Crash, CrashFileSystem, scrambled_crashes
from tests.storage.support import NOW, bytes_of, flush_log, found_by_timestamp, read_all, records_in
from tests.support.effort import examples

PARTITION = TopicPartition("topic", 0)
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_bytes=2500)
NO_PRODUCER = -1


class ModelRecord(NamedTuple):
    offset: int
    timestamp: int
    value: bytes


class ModelBatch(NamedTuple):
    records: tuple[ModelRecord, ...]
    producer_id: int
    sequence: int

    @property
    def base_offset(self) -> int:
        return self.records[0].offset

    @property
    def next_offset(self) -> int:
        return self.records[-1].offset + 1


new_batches = st.tuples(
    st.lists(st.integers(NOW - 50, NOW), min_size=1, max_size=4),
    st.sampled_from(CompressionType),
    st.sampled_from([NO_PRODUCER, 1, 2]),
)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.boots = 0
        self.value = 0
        self.batches: list[ModelBatch] = []
        self.start = 0
        self.flushed = 0
        self.root = ""
        self.directory: LogDirectory
        self.log: Log
        self.file_system: CrashFileSystem

    @initialize()
    def create(self) -> None:
        self.root = str(Path(self.temporary.name) / "0")
        os.mkdir(self.root)
        self.open()
        self.log = self.directory.create_log(PARTITION, uuid.uuid4(), CONFIG, NOW)
        flush_log(self.log)
        self.directory.start_checkpoint().write()

    def open(self) -> None:
        self.file_system = CrashFileSystem(self.root)
        self.directory = LogDirectory(
            self.root, node_id=1, config_of=lambda topic: CONFIG, now_ms=NOW, file_system=self.file_system
        )
        if PARTITION in self.directory.logs:
            self.log = self.directory.logs[PARTITION]

    def teardown(self) -> None:
        self.directory.abandon()
        self.temporary.cleanup()

    # -- the model

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    @property
    def records(self) -> list[ModelRecord]:
        return [record for batch in self.batches for record in batch.records if record.offset >= self.start]

    def cut(self, offset: int) -> None:
        """Drop the batches that reach to `offset`."""
        self.start = min(self.start, offset)
        self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
        if self.end < self.start:
            self.batches = []

    # -- appending

    @rule(data=st.lists(new_batches, min_size=1, max_size=5))
    def append(self, data: list[tuple[list[int], CompressionType, int]]) -> None:
        batches, record_sets = [], []
        end = self.end
        for timestamps, codec, producer_id in data:
            sequence = self.next_sequence(producer_id, batches)
            new = []
            for timestamp in timestamps:
                self.value += 1
                new.append(NewRecord(timestamp, b"k", b"%d" % self.value))
            records = tuple(
                ModelRecord(end + number, record.timestamp, record.value or b"") for number, record in enumerate(new)
            )
            batches.append(ModelBatch(records, producer_id, sequence))
            end += len(records)
            record_sets.append(memoryview(self.encode(new, codec, producer_id, sequence)))
        results = self.log.append(record_sets, leader_epoch=0, now_ms=NOW)
        assert results == [AppendResult(batch.base_offset, batch.next_offset - 1) for batch in batches]
        self.batches += batches
        self.log.update_high_watermark(self.log.end_offset)

    def encode(self, records: list[NewRecord], codec: CompressionType, producer_id: int, sequence: int) -> bytearray:
        if producer_id == NO_PRODUCER:
            return build_batch(records, compression=codec)
        return build_batch(
            records, compression=codec, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )

    def next_sequence(self, producer_id: int, more: list[ModelBatch]) -> int:
        for batch in reversed(self.batches + more):
            if batch.producer_id == producer_id:
                return batch.sequence + len(batch.records)
        known = self.log.producer_state.producers.get(producer_id)
        return known.last_sequence + 1 if known else 0

    @property
    def last_of_a_producer(self) -> ModelBatch | None:
        """The last batch of a producer, if it is still there."""
        for batch in reversed(self.batches):
            if batch.producer_id != NO_PRODUCER:
                return batch if batch.base_offset >= self.start else None
        return None

    @precondition(lambda self: self.last_of_a_producer is not None)
    @rule()
    def repeat_the_last_batch_of_a_producer(self) -> None:
        last = self.last_of_a_producer
        assert last is not None
        records = [NewRecord(record.timestamp, b"k", record.value) for record in last.records]
        again = self.encode(records, CompressionType.NONE, last.producer_id, last.sequence)
        (result,) = self.log.append([memoryview(again)], leader_epoch=0, now_ms=NOW)
        assert isinstance(result, AppendResult)
        assert result.duplicate
        assert (result.base_offset, result.last_offset) == (last.base_offset, last.next_offset - 1)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    # -- reading

    @rule(data=st.data(), max_bytes=st.integers(1, 2000))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        bound = data.draw(st.integers(self.start, self.end))
        found = records_in(bytes_of(self.log.read(offset, max_bytes, upper_bound=bound)))
        expected = [
            record
            for batch in self.batches
            if batch.next_offset > offset and batch.next_offset <= bound
            for record in batch.records
        ]
        assert [(record.offset, record.timestamp, record.value) for record in found] == expected[: len(found)]
        if expected:
            assert found

    @rule(beyond=st.integers(1, 5))
    def read_outside(self, beyond: int) -> None:
        for offset in (self.start - beyond, self.end + beyond):
            try:
                self.log.read(offset, 1000, upper_bound=self.end)
            except OffsetOutOfRange:
                continue
            raise AssertionError(f"{offset} can be read")

    @rule(timestamp=st.integers(NOW - 60, NOW + 10))
    def find_by_timestamp(self, timestamp: int) -> None:
        expected = next((record for record in self.records if record.timestamp >= timestamp), None)
        found = found_by_timestamp(self.log, timestamp)
        assert (found and (found.offset, found.timestamp)) == (expected and (expected.offset, expected.timestamp))

    # -- giving up records

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.directory.truncate_log(PARTITION, offset, NOW).run()
        self.cut(offset)
        self.flushed = min(self.flushed, self.end)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.increment_log_start_offset(self.start)

    @rule()
    def retain(self) -> None:
        pending = apply_retention(self.log, NOW)
        if pending is not None:
            pending.run()
        if self.log.log_start_offset > self.start:
            assert self.log.size >= CONFIG.retention_bytes
        self.start = self.log.log_start_offset

    # -- stopping and starting

    @rule()
    def flush(self) -> None:
        flush_log(self.log)
        self.flushed = self.end

    @rule()
    def checkpoint(self) -> None:
        self.directory.start_checkpoint().write()

    @rule()
    def restart(self) -> None:
        self.directory.close()
        self.flushed = self.end
        self.open()
        assert self.directory.was_clean

    @rule(crash=st.sampled_from([PROCESS_CRASH, *MACHINE_CRASHES, *scrambled_crashes(3)]))
    def crash(self, crash: Crash) -> None:
        self.directory.abandon()
        self.boots += 1
        root = str(Path(self.temporary.name) / str(self.boots))
        self.file_system.disk_after(crash).write_to(self.root, root)
        self.root = root
        self.open()
        self.log.update_high_watermark(self.log.end_offset)
        assert self.flushed <= self.log.end_offset <= self.end
        if crash is PROCESS_CRASH:
            assert self.log.end_offset == self.end
        # A start that was not written down may have been lost; what lies before it is anybody's guess.
        assert self.log.log_start_offset <= self.start
        self.log.increment_log_start_offset(min(self.start, self.log.end_offset))
        self.cut(self.log.end_offset)
        self.start = self.log.log_start_offset

    # -- always

    @invariant()
    def offsets_agree(self) -> None:
        if self.root:
            assert (self.log.log_start_offset, self.log.end_offset) == (self.start, self.end)
            assert self.log.last_stable_offset == self.log.high_watermark == self.end

    @invariant()
    def records_agree(self) -> None:
        if self.root:
            found = [(record.offset, record.timestamp, record.value) for record in read_all(self.log)]
            assert [record for record in found if record[0] >= self.start] == self.records

    @invariant()
    def batches_are_found_by_the_index(self) -> None:
        for batch in self.batches:
            if batch.base_offset >= self.start:
                found = self.log.read(batch.next_offset - 1, 1, upper_bound=self.end)
                assert read_header(bytes_of(found)).base_offset == batch.base_offset


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=examples(60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_indexes_that_were_finished_after_the_records_were_synced():
    """A segment is rolled after a flush, so its time index gets its last entry then; a crash tears that entry."""
    for crash in MACHINE_CRASHES:
        for between in (LogMachine.flush, LogMachine.restart, lambda log: log.crash(PROCESS_CRASH)):
            log = LogMachine()
            log.create()
            log.append([([NOW - 50], CompressionType.NONE, NO_PRODUCER)] * 3)
            log.flush()
            log.checkpoint()
            between(log)
            log.roll()
            log.crash(crash)
            log.batches_are_found_by_the_index()
            log.find_by_timestamp(NOW - 60)
            log.append([([NOW - 40], CompressionType.NONE, NO_PRODUCER)])
            log.flush()
            log.checkpoint()
            log.crash(crash)
            log.batches_are_found_by_the_index()
            log.find_by_timestamp(NOW - 60)
            log.teardown()

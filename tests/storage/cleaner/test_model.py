"""The cleaner against a model of it that is slow and obvious.

Random logs, of every codec and with transactions, are compacted at random moments, truncated and opened again. After
every compaction the log must hold the records that the model says, where they were before and as they were.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType
from barnabas.protocol.records.record import Record
from barnabas.storage.cleaner.cleanable import cleanable_section
from barnabas.storage.log_loader import KnownOffsets
from barnabas.storage.producer_snapshot import SnapshotEntry
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.cleaner.support import (
    cleaning_of,
    compacted_log,
    end_transaction,
    fetch,
    headers,
    read_all,
    read_committed,
)
from tests.storage.support import NOW, append, flush_log, make_log
from tests.support.effort import examples

KEYS = [b"a", b"b", b"c", b"d", b"longer" * 30]
PRODUCERS = [1, 2]
DELETE_RETENTION_MS = 1000


@dataclass
class ModelBatch:
    producer_id: int | None
    records: dict[int, Record]
    # None until its transaction, if it has one, has come to its end.
    is_committed: bool | None
    delete_horizon: int | None = None


@dataclass
class Model:
    batches: list[ModelBatch] = field(default_factory=list)

    def compact(self, first_dirty: int, end: int, now_ms: int) -> None:
        last: dict[bytes | None, int] = {}
        for batch in self.batches:
            for record in batch.records.values():
                if batch.is_committed and first_dirty <= record.offset < end:
                    last[record.key] = record.offset
        for batch in self.batches:
            expired = batch.delete_horizon is not None and batch.delete_horizon <= now_ms
            for record in list(batch.records.values()):
                if record.offset < end and (
                    not batch.is_committed
                    or record.offset < last.get(record.key, -1)
                    or (record.value is None and expired)
                ):
                    del batch.records[record.offset]
            in_range = any(record.offset < end for record in batch.records.values())
            if in_range and batch.delete_horizon is None and any(r.value is None for r in batch.records.values()):
                batch.delete_horizon = now_ms + DELETE_RETENTION_MS

    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records.values()]

    def committed(self) -> list[Record]:
        """Up to the first transaction that has not come to its end."""
        found = []
        for batch in self.batches:
            if batch.is_committed is None:
                break
            if batch.is_committed:
                found += batch.records.values()
        return found


class CompactionMachine(RuleBasedStateMachine):
    @initialize(segment_bytes=st.sampled_from([150, 400, 5000]))
    def start(self, segment_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.log = compacted_log(
            self.folder, segment_bytes=segment_bytes, index_interval_bytes=100, delete_retention_ms=DELETE_RETENTION_MS
        )
        self.model = Model()
        self.now_ms = NOW
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.latest: dict[bytes | None, bytes | None] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.log.drop_files()
            shutil.rmtree(self.folder)

    @rule(
        pairs=st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.binary(max_size=20)), min_size=1, max_size=80),
        codec=st.sampled_from(CompressionType),
        producer_id=st.none() | st.sampled_from(PRODUCERS),
        times=st.lists(st.integers(-1000, 1000), min_size=1, max_size=3),
    )
    def append_batch(
        self, pairs: list[tuple[bytes, bytes | None]], codec: CompressionType, producer_id: int | None, times: list[int]
    ) -> None:
        records = [
            NewRecord(self.now_ms + times[place % len(times)], key, value, [("h", b"v")] if place == 3 else ())
            for place, (key, value) in enumerate(pairs)
        ]
        fields = {}
        if producer_id is not None:
            fields = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": self.sequences[producer_id],
                "transactional": True,
            }
            self.sequences[producer_id] += len(records)
        data = memoryview(build_batch(records, compression=codec, **fields))  # type: ignore[arg-type]
        (base_offset,) = append(self.log, data, origin=AppendOrigin.COORDINATOR, now_ms=self.now_ms)
        self.model.batches.append(
            ModelBatch(
                producer_id,
                {base_offset + place: Record(base_offset + place, *record) for place, record in enumerate(records)},
                True if producer_id is None else None,
            )
        )

    @rule(producer_id=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        end_transaction(self.log, ControlType.COMMIT if commit else ControlType.ABORT, producer_id)
        for batch in self.model.batches:
            if batch.producer_id == producer_id and batch.is_committed is None:
                batch.is_committed = commit

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)
        flush_log(self.log)

    @rule(milliseconds=st.sampled_from([1, 999, 1000, 5000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    @precondition(lambda self: cleanable_section(self.log, self.now_ms).cleanable_bytes > 0)
    @rule()
    def compact(self) -> None:
        section = cleanable_section(self.log, self.now_ms)
        cleaning = cleaning_of(self.log, self.now_ms)
        for step in cleaning.steps():
            step()
        assert cleaning.stats is not None
        assert self.log.first_dirty_offset == section.first_uncleanable_offset
        self.model.compact(section.first_dirty_offset, section.first_uncleanable_offset, self.now_ms)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        known = KnownOffsets(
            0, self.log.log_start_offset, self.log.high_watermark, first_dirty_offset=self.log.first_dirty_offset
        )
        config = self.log.config
        producers = self.producers()
        if clean:
            flush = self.log.start_close()
            flush.sync()
            self.log.finish_flush(flush, self.now_ms)
        self.log.drop_files()
        self.log = make_log(self.folder / "topic-0", config, clean=clean, known=known)
        assert self.producers() == producers

    def producers(self) -> list[SnapshotEntry]:
        """All but the epochs of their coordinators: those may have been compacted away with old markers."""
        entries = self.log.producer_state.snapshot()
        return sorted(entry._replace(coordinator_epoch=-1) for entry in entries)

    @invariant()
    def records_are_what_the_model_says(self) -> None:
        if hasattr(self, "log"):
            assert read_all(self.log) == self.model.records()
            assert read_committed(self.log) == self.model.committed()

    @invariant()
    def every_batch_can_be_found(self) -> None:
        if hasattr(self, "log"):
            for header in headers(self.log):
                for offset in (header.base_offset, header.last_offset):
                    found = next(fetch(self.log, offset, self.log.end_offset, max_bytes=1))
                    assert found[0] == header


CompactionMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCompaction = CompactionMachine.TestCase

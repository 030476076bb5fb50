"""barnabas.storage.check: a sound directory has no problems; all kinds of damage are found, and in the right place."""

import os
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.records.batch import (
    BASE_OFFSET_POSITION,
    LAST_OFFSET_DELTA_POSITION,
    RECORD_COUNT_POSITION,
    seal,
)
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.check import Problem, check_directory, check_partition
from barnabas.storage.config import LogConfig
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.producer_snapshot import SnapshotEntry, encode_snapshot
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import NOW, append, batch

pytestmark = pytest.mark.usefixtures("leaves_damage")

A = TopicPartition("a", 0)
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100)
FIRST, SECOND, LAST = (f"{base_offset:020d}" for base_offset in (0, 12, 23))


def open_directory(path: Path) -> LogDirectory:
    return LogDirectory(str(path), node_id=1, config_of=lambda topic: CONFIG, now_ms=NOW)


def fill(directory: LogDirectory) -> None:
    """Three segments: batches of a producer, an aborted transaction in the second, a new leader in the last."""
    log = directory.create_log(A, uuid.uuid4(), CONFIG, NOW)
    for number in range(11):
        fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": number}
        append(log, batch(b"%d" % number, timestamp=NOW + number, **fields))
    append(log, batch(b"transaction", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True))
    log.roll(NOW)
    marker = build_end_transaction_marker(
        ControlType.ABORT, timestamp=NOW, producer_id=6, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)
    for number in range(10):
        append(log, batch(b"%d" % number, timestamp=NOW + 20 + number, compression=CompressionType.LZ4))
    log.roll(NOW)
    append(log, batch(b"later", timestamp=NOW + 40), batch(b"latest", timestamp=NOW + 41), leader_epoch=3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory that was stopped cleanly."""
    directory = open_directory(tmp_path / "data")
    fill(directory)
    assert [segment.base_offset for segment in directory.logs[A].segments] == [0, 12, 23]
    directory.close()
    return tmp_path / "data"


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """One that was left as a crash of the process leaves it, before anything was flushed."""
    directory = open_directory(tmp_path / "data")
    fill(directory)
    directory.start_checkpoint().write()
    directory.abandon()
    return tmp_path / "data"


def problems(data: Path, **options: Any) -> list[tuple[str, int | None, str]]:
    """Each with its path below the data directory."""
    return [
        (os.path.relpath(path, data), position, message)
        for path, position, message in check_directory(str(data), **options)
    ]


def change(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def rewrite_batch(path: Path, change: Callable[[bytearray], None], position: int = 0) -> None:
    """Change a batch and make its checksum fit."""
    content = bytearray(path.read_bytes())
    size = 12 + int.from_bytes(content[position + 8 : position + 12])
    changed = content[position : position + size]
    change(changed)
    seal(memoryview(changed))
    content[position : position + size] = changed
    path.write_bytes(content)


def batch_positions(path: Path) -> list[int]:
    content = path.read_bytes()
    positions, position = [], 0
    while position < len(content):
        positions.append(position)
        position += 12 + int.from_bytes(content[position + 8 : position + 12])
    return positions


# -- nothing is wrong


def test_a_sound_directory(data: Path) -> None:
    assert problems(data) == []
    assert problems(data, deep=True) == []


def test_after_a_crash(crashed: Path) -> None:
    assert problems(crashed) == []


def test_a_partition_in_use(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "data")
    fill(directory)
    assert check_partition(directory.logs[A].folder) == []
    directory.abandon()


def test_an_empty_directory(tmp_path: Path) -> None:
    open_directory(tmp_path / "data").close()
    assert problems(tmp_path / "data") == []


def test_what_waits_to_be_deleted_is_ignored(data: Path) -> None:
    (data / "a-0" / f"{FIRST}.log.deleted").write_bytes(b"anything")
    (data / "a-0" / f"{FIRST}.log.cleaned").write_bytes(b"anything")
    (data / f"b-0.{uuid.uuid4().hex}-delete").mkdir()
    assert problems(data) == []


def test_a_swap_that_is_not_finished_counts_as_finished(data: Path) -> None:
    folder = data / "a-0"
    for suffix in (".log", ".index", ".timeindex"):
        os.rename(folder / f"{FIRST}{suffix}", folder / f"{FIRST}{suffix}.swap")
    (folder / f"{FIRST}.log").write_bytes(b"anything")
    assert problems(data) == []


# -- batches


def test_a_batch_that_does_not_match_its_checksum(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.log"
    third = batch_positions(path)[2]
    change(path, third + 65, b"\xff")
    found = problems(data)
    size = path.stat().st_size
    assert found[0] == (
        f"a-0/{FIRST}.log",
        third,
        f"the batch at byte {third} does not match its checksum; {size - third} bytes from here on cannot be read",
    )
    # What points into the part that cannot be read is wrong, too.
    assert {path for path, _, _ in found[1:]} == {f"a-0/{FIRST}.index", f"a-0/{FIRST}.timeindex"}


@pytest.mark.parametrize("cut", [1, 30, 71])
def test_a_torn_batch_at_the_end_after_a_crash(crashed: Path, cut: int) -> None:
    path = crashed / "a-0" / f"{LAST}.log"
    last = batch_positions(path)[-1]
    os.truncate(path, path.stat().st_size - cut)
    torn, lost = problems(crashed)
    assert torn[:2] == (f"a-0/{LAST}.log", last)
    assert lost[2] == "the high watermark of a-0 is 25, but its log ends at 24"


def test_another_magic(data: Path) -> None:
    change(data / "a-0" / f"{LAST}.log", 16, b"\x01")
    assert problems(data)[0][:2] == (f"a-0/{LAST}.log", 0)
    assert "magic 1" in problems(data)[0][2]


def test_offsets_that_do_not_rise(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    second = batch_positions(path)[1]
    change(path, second + BASE_OFFSET_POSITION, struct.pack(">q", 23))
    assert problems(data)[0][:2] == (f"a-0/{LAST}.log", second)
    assert "begins at offset 23, but 24 is next" in problems(data)[0][2]


def test_a_segment_that_begins_before_the_one_before_it_ends(data: Path) -> None:
    path = data / "a-0" / f"{SECOND}.log"
    last = batch_positions(path)[-1]
    change(path, last + BASE_OFFSET_POSITION, struct.pack(">q", 30))
    assert (f"a-0/{LAST}.log", None, "begins at offset 23, before 31") in problems(data)


def test_gaps_where_nothing_was_compacted(data: Path) -> None:
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        (data / "a-0" / f"{SECOND}{suffix}").unlink(missing_ok=True)
    gap = (f"a-0/{LAST}.log", None, "offset 23 follows offset 11; the offsets between them are missing")
    assert gap in problems(data, uncompacted={"a"})
    assert gap not in problems(data)
    change(data / "cleaner-offset-checkpoint", 0, b"0\n1\na 0 5\n")
    assert gap not in problems(data, uncompacted={"a"})


def test_a_folder_that_was_set_aside(data: Path) -> None:
    (data / f"b-0.{uuid.uuid4().hex}-stray").mkdir()
    ((_, _, message),) = problems(data)
    assert message == "was set aside at startup because no topic had this partition"


def test_more_records_than_offsets(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    rewrite_batch(path, lambda batch: struct.pack_into(">i", batch, RECORD_COUNT_POSITION, 2))
    assert "2 records in 1 offsets" in problems(data)[0][2]


def test_offsets_out_of_reach(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    rewrite_batch(path, lambda batch: struct.pack_into(">i", batch, LAST_OFFSET_DELTA_POSITION, -1))
    assert "beyond the segment's range" in problems(data)[0][2]


def test_an_unknown_codec(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    rewrite_batch(path, lambda batch: struct.pack_into(">h", batch, 21, 7))
    assert "compression type 7" in problems(data)[0][2]


def test_records_that_do_not_parse_are_found_by_a_deep_look(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    rewrite_batch(path, lambda batch: struct.pack_into(">b", batch, 61, 126))
    assert problems(data) == []
    assert problems(data, deep=True)[0][:2] == (f"a-0/{LAST}.log", 0)


def test_records_outside_of_their_batch_are_found_by_a_deep_look(data: Path) -> None:
    path = data / "a-0" / f"{LAST}.log"
    rewrite_batch(path, lambda batch: struct.pack_into(">b", batch, 64, 2))
    assert "a record has offset 24" in problems(data, deep=True)[0][2]


# -- indexes


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (struct.pack(">ii", 2, 1), "no batch begins at byte 1, where offset 2 should be"),
        (struct.pack(">ii", 1, 0), "the batch at byte 0 ends at offset 0, not 1"),
        (struct.pack(">ii", -1, -1), "offset -1 at byte -1 is out of order"),
    ],
)
def test_an_index_entry_that_points_nowhere(data: Path, entry: bytes, message: str) -> None:
    change(data / "a-0" / f"{FIRST}.index", 0, entry)
    assert problems(data)[0] == (f"a-0/{FIRST}.index", 0, message)


def test_index_entries_that_do_not_rise(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.index"
    change(path, 8, path.read_bytes()[:8])
    assert problems(data)[0][:2] == (f"a-0/{FIRST}.index", 8)


def test_a_time_index_entry_with_another_time(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.timeindex"
    timestamp, offset = struct.unpack_from(">qi", path.read_bytes())
    change(path, 0, struct.pack(">q", timestamp - 1))
    message = f"the latest time up to offset {offset} is {timestamp}, not {timestamp - 1}"
    assert problems(data) == [(f"a-0/{FIRST}.timeindex", 0, message)]


def test_a_time_index_entry_that_points_nowhere(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.timeindex"
    change(path, 8, struct.pack(">i", 1000))
    assert "no batch ends at offset 1000" in problems(data)[0][2]


def test_a_time_index_without_the_latest_time(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.timeindex"
    os.truncate(path, path.stat().st_size - 12)
    assert problems(data) == [(f"a-0/{FIRST}.timeindex", None, f"the latest time, {NOW + 10}, is missing")]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index(data: Path, suffix: str) -> None:
    (data / "a-0" / f"{FIRST}{suffix}").unlink()
    assert problems(data) == [(f"a-0/{FIRST}{suffix}", None, "is missing")]


def test_an_entry_that_is_cut_short(data: Path) -> None:
    path = data / "a-0" / f"{FIRST}.index"
    os.truncate(path, path.stat().st_size - 3)
    assert problems(data) == [(f"a-0/{FIRST}.index", path.stat().st_size - 5, "the last entry is truncated")]


def test_an_aborted_transaction_that_is_missing(data: Path) -> None:
    path = data / "a-0" / f"{SECOND}.txnindex"
    path.unlink()
    assert problems(data) == [(f"a-0/{SECOND}.txnindex", None, "the abort of producer 6 at offset 12 is missing")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((1, 6, 11, 12, 13), "version 1"),
        ((0, 7, 11, 12, 13), "producer 7 aborted nothing at offset 12"),
        ((0, 6, 11, 14, 15), "producer 6 aborted nothing at offset 14"),
        ((0, 6, 12, 12, 13), "an aborted transaction begins at 11, not 12"),
    ],
)
def test_an_entry_for_a_transaction_that_was_not_aborted(data: Path, entry: tuple[int, ...], message: str) -> None:
    change(data / "a-0" / f"{SECOND}.txnindex", 0, struct.pack(">hqqqq", *entry))
    assert problems(data)[0] == (f"a-0/{SECOND}.txnindex", 0, message)


def test_indexes_that_the_next_start_rebuilds_may_hold_anything(crashed: Path) -> None:
    for path in (crashed / "a-0").glob("*index"):
        path.write_bytes(b"anything")
    assert problems(crashed) == []


# -- snapshots, epochs, ids


def test_a_damaged_snapshot(data: Path) -> None:
    change(data / "a-0" / f"{SECOND}.snapshot", 10, b"\xff")
    assert problems(data) == [(f"a-0/{SECOND}.snapshot", None, "the producer snapshot does not match its checksum")]


def test_a_snapshot_that_knows_what_comes_later(data: Path) -> None:
    entry = SnapshotEntry(5, 0, 10, 12, 0, NOW, -1, -1)
    (data / "a-0" / f"{SECOND}.snapshot").write_bytes(encode_snapshot([entry]))
    message = "producer 5 has last offset 12, which is after the snapshot"
    assert problems(data) == [(f"a-0/{SECOND}.snapshot", None, message)]


def test_a_snapshot_that_knows_less_than_the_log(data: Path) -> None:
    entry = SnapshotEntry(5, 0, 9, 9, 0, NOW, -1, -1)
    (data / "a-0" / f"{SECOND}.snapshot").write_bytes(encode_snapshot([entry]))
    message = "producer 5 had epoch 0 and offset 10, not 0 and 9"
    assert problems(data) == [(f"a-0/{SECOND}.snapshot", None, message)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n2\n0 0\n3 22\n", "the batch at offset 22 has epoch 0, but the file has another one"),
        ("0\n2\n3 0\n0 23\n", "epoch 0 at offset 23 does not follow epoch 3 at offset 0"),
        ("0\n3\n0 0\n3 23\n4 26\n", "epoch 4 begins at offset 26, but the log ends at 25"),
        ("0\n3\n0 0\n", "the line count is ['3'], but 1 lines follow"),
    ],
)
def test_epochs_that_are_not_those_of_the_log(data: Path, text: str, message: str) -> None:
    (data / "a-0" / "leader-epoch-checkpoint").write_text(text)
    assert ("a-0/leader-epoch-checkpoint", None, message) in problems(data)


def test_a_topic_id_that_cannot_be_read(data: Path) -> None:
    (data / "a-0" / "partition.metadata").write_text("version: 5")
    assert problems(data) == [("a-0/partition.metadata", None, "version 5, but only version 0 can be read")]


# -- the directory


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("recovery-point-offset-checkpoint", "recovery point"),
        ("replication-offset-checkpoint", "high watermark"),
        ("log-start-offset-checkpoint", "log start offset"),
        ("cleaner-offset-checkpoint", "first dirty offset"),
    ],
)
def test_a_checkpoint_beyond_the_end_of_its_log(data: Path, name: str, what: str) -> None:
    (data / name).write_text("0\n2\na 0 26\ngone 0 5\n")
    assert problems(data) == [(name, None, f"the {what} of a-0 is 26, but its log ends at 25")]


def test_a_damaged_checkpoint(data: Path) -> None:
    (data / "replication-offset-checkpoint").write_text("0\n1\na 0\n")
    assert problems(data) == [("replication-offset-checkpoint", None, "'a 0'")]


def test_whose_directory_it_is_must_be_known(data: Path) -> None:
    (data / "meta.properties").unlink()
    assert problems(data) == [("meta.properties", None, "is missing")]
    (data / "meta.properties").write_text("version=7\n")
    assert problems(data) == [("meta.properties", None, "version 7, but only version 1 can be read")]


def test_a_problem_is_a_sentence() -> None:
    assert str(Problem("a/b.log", 7, "torn")) == "a/b.log, byte 7: torn"
    assert str(Problem("a/b.log", None, "torn")) == "a/b.log: torn"


def test_a_log_that_compaction_left_gaps_in_is_sound(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "data")
    log = directory.create_log(A, uuid.uuid4(), CONFIG, NOW)
    for base_offset in (0, 5, 7):
        gappy = build_batch(
            [NewRecord(NOW + base_offset, b"key", b"v")], base_offset=base_offset, partition_leader_epoch=0
        )
        log.append_as_follower(memoryview(gappy), now_ms=NOW)
    directory.close()
    assert problems(tmp_path / "data") == []

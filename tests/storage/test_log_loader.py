"""barnabas.storage.log_loader and barnabas.storage.recovery: what is there after a stop, clean or not."""

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.records.errors import RecordsError
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import OutOfOrderSequence
from barnabas.storage.log import Log
from barnabas.storage.log_loader import KnownOffsets
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.write import AppendResult
from tests.storage.support import (
    NOW,
    append,
    batch,
    close_log,
    flush_log,
    found_by_timestamp,
    make_log,
    read_all,
    values_of,
)

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "topic-0"


def fill(folder: Path, count: int = 50, config: LogConfig = SMALL) -> Log:
    """A log with some segments, epochs, producers, and an aborted transaction."""
    log = make_log(folder, config)
    for number in range(count):
        if number == count // 2:
            abort(log)
        append(log, idempotent(number), leader_epoch=number // 10)
    return log


def idempotent(number: int) -> memoryview:
    return batch(b"%d" % number, timestamp=NOW + number, producer_id=5, producer_epoch=0, base_sequence=number)


def abort(log: Log) -> None:
    begin = batch(b"aborted", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    append(log, begin, leader_epoch=log.leader_epochs.latest_epoch)
    marker = build_end_transaction_marker(
        ControlType.ABORT, timestamp=NOW, producer_id=6, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(marker), leader_epoch=log.leader_epochs.latest_epoch, origin=AppendOrigin.COORDINATOR)


def facts(log: Log) -> dict[str, Any]:
    """Everything that must be the same before and after."""
    return {
        "records": read_all(log),
        "start": log.log_start_offset,
        "end": log.end_offset,
        "segments": [(segment.base_offset, segment.size) for segment in log.segments],
        "positions": [[segment.locate(offset) for segment in log.segments] for offset in range(log.end_offset)],
        "index entries": [segment.offset_index.entries for segment in log.segments],
        "times": [segment.max_timestamp for segment in log.segments],
        "time": found_by_timestamp(log, NOW + 20),
        "aborted": log.aborted_transactions(0, log.end_offset),
        "epochs": log.leader_epochs.entries,
        # A snapshot holds the last batch of each, a scan of the log the last five.
        "producers": {
            name: producer._replace(batches=producer.batches[-1:])
            for name, producer in log.producer_state.producers.items()
        },
    }


def damage(path: Path, position: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def newest(folder: Path, suffix: str = ".log") -> Path:
    return max(path for path in folder.iterdir() if path.name.endswith(suffix))


# -- in order


def test_after_a_clean_stop_everything_is_as_before(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    assert facts(make_log(folder, SMALL)) == before


def test_a_clean_stop_of_an_empty_log(folder: Path) -> None:
    close_log(make_log(folder))
    log = make_log(folder)
    assert (log.log_start_offset, log.end_offset) == (0, 0)
    assert append(log, batch(b"a")) == [0]


def test_after_a_clean_stop_nothing_is_scanned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_log(fill(folder))
    read = 0
    pread = os.pread

    def counting_pread(fd: int, size: int, position: int) -> bytes:
        nonlocal read
        data = pread(fd, size, position)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting_pread)
    log = make_log(folder, SMALL)
    assert log.end_offset == 52
    assert read < 1000


def test_the_log_goes_on_after_a_clean_stop(folder: Path) -> None:
    close_log(fill(folder))
    log = make_log(folder, SMALL)
    (result,) = log.append([idempotent(49)], leader_epoch=9, now_ms=NOW)
    assert isinstance(result, AppendResult)
    assert result.duplicate
    assert append(log, idempotent(50), leader_epoch=9) == [52]
    with pytest.raises(OutOfOrderSequence):
        append(log, idempotent(52))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_lost_index_is_built_again(folder: Path, suffix: str) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    for path in folder.glob(f"*{suffix}"):
        path.unlink()
    assert facts(make_log(folder, SMALL)) == before


def test_an_index_that_ends_within_an_entry_is_built_again(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    for path in folder.glob("*.index"):
        path.write_bytes(path.read_bytes() + b"x")
    assert facts(make_log(folder, SMALL)) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_that_hold_anything_at_all_do_no_harm(folder: Path, suffix: str, leaves_damage: None) -> None:
    """They are rebuilt when a read finds the damage."""
    log = fill(folder)
    before = facts(log)
    close_log(log)
    for seed in range(20):
        random = Random(seed)
        paths = [path for path in folder.iterdir() if path.name.endswith(suffix)]
        for path in paths:
            path.write_bytes(random.randbytes(path.stat().st_size))
        log = make_log(folder, SMALL)
        found = facts(log)
        close_log(log)
        assert {**found, "index entries": None} == {**before, "index entries": None}


def test_a_transaction_index_of_the_last_segment_that_cannot_be_read_is_built_again(folder: Path) -> None:
    log = fill(folder, config=LogConfig())
    before = facts(log)
    close_log(log)
    path = newest(folder, ".txnindex")
    path.write_bytes(b"\xff" * path.stat().st_size)
    log = make_log(folder)
    assert facts(log) == before
    close_log(log)


def test_an_index_that_is_built_again_while_it_is_read_is_logged_and_kept(folder: Path) -> None:
    close_log(fill(folder))
    log = make_log(folder, SMALL)
    segment = log.segments.first
    path = Path(segment.offset_index.path)
    path.write_bytes(b"\0\0\0\1\x7f\x7f\x7f\x7f" * (path.stat().st_size // 8))
    with capture_logs() as logs:
        assert segment.locate(segment.base_offset + 9) is not None
        assert segment.locate(segment.base_offset + 9) is not None
    assert [entry["path"] for entry in logs] == [str(path)]
    assert b"\x7f" * 4 not in path.read_bytes()


def test_a_damaged_snapshot_is_replaced_by_an_older_one(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    damage(newest(folder, ".snapshot"))
    assert facts(make_log(folder, SMALL)) == before


def test_without_snapshots_the_log_is_enough(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    for path in folder.glob("*.snapshot"):
        path.unlink()
    assert facts(make_log(folder, SMALL)) == before


def test_stops_and_starts_leave_no_snapshots_behind(folder: Path) -> None:
    for _ in range(3):
        log = make_log(folder)
        append(log, batch())
        close_log(log)
    make_log(folder)
    assert [path.name for path in folder.glob("*.snapshot")] == ["00000000000000000003.snapshot"]


def test_a_damaged_epoch_file_is_replaced_by_what_the_log_says(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    (folder / "leader-epoch-checkpoint").write_text("nonsense")
    assert facts(make_log(folder, SMALL)) == before


# -- after a crash


def test_an_epoch_file_that_a_crash_left_empty_is_replaced_by_what_the_log_says(folder: Path) -> None:
    log = fill(folder)
    before = log.leader_epochs.entries
    (folder / "leader-epoch-checkpoint").write_bytes(b"")
    flushed = log.segments.active.base_offset
    opened = make_log(folder, SMALL, clean=False, known=KnownOffsets(recovery_point=flushed))
    assert opened.leader_epochs.entries == before


def test_after_a_crash_everything_written_is_there(folder: Path) -> None:
    before = facts(fill(folder))
    assert facts(make_log(folder, SMALL, clean=False)) == before


@pytest.mark.parametrize("recovery_point", [1, 10, 25, 51, 52, 99])
def test_the_recovery_point_changes_nothing_but_the_work(folder: Path, recovery_point: int) -> None:
    log = fill(folder)
    before = facts(log)
    flush_log(log)
    known = KnownOffsets(recovery_point=recovery_point)
    assert facts(make_log(folder, SMALL, clean=False, known=known)) == before


def test_a_torn_batch_is_cut_off_wherever_it_is_torn(folder: Path, tmp_path: Path) -> None:
    log = make_log(folder)
    append(log, batch(b"a"), batch(b"b"))
    whole = log.size
    append(log, batch(b"torn"))
    for size in range(whole, log.size):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        os.truncate(newest(copy), size)
        recovered = make_log(copy, clean=False)
        assert values_of(read_all(recovered)) == [b"a", b"b"]
        assert os.path.getsize(newest(copy)) == whole
        assert append(recovered, batch(b"c")) == [2]
        shutil.rmtree(copy)


def test_zeros_at_the_end_are_cut_off(folder: Path) -> None:
    append(make_log(folder), batch(b"a"))
    with newest(folder).open("ab") as file:
        file.write(bytes(5000))
    assert values_of(read_all(make_log(folder, clean=False))) == [b"a"]


def test_all_that_follows_a_damaged_batch_is_cut_off(folder: Path) -> None:
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    records = read_all(log)
    damaged = folder / f"{bases[2]:020d}.log"
    damage(damaged, damaged.stat().st_size // 2)
    recovered = make_log(folder, SMALL, clean=False)
    assert bases[2] < recovered.end_offset < bases[3]
    assert read_all(recovered) == [record for record in records if record.offset < recovered.end_offset]
    assert [segment.base_offset for segment in recovered.segments] == bases[:3]
    assert not list(folder.glob(f"{bases[3]:020d}*"))


@pytest.mark.usefixtures("leaves_damage")
def test_damage_before_the_recovery_point_is_not_looked_for(folder: Path) -> None:
    log = fill(folder)
    flush_log(log)
    end_offset = log.end_offset
    damage(folder / f"{0:020d}.log", 100)
    known = KnownOffsets(recovery_point=log.recovery_point)
    recovered = make_log(folder, SMALL, clean=False, known=known)
    assert recovered.end_offset == end_offset
    with pytest.raises(RecordsError):
        read_all(recovered)


def test_what_follows_a_lost_middle_is_dropped(folder: Path) -> None:
    # The machine went down: the end of one segment never reached the disk, though the next one did.
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    last = log.segments.from_offset(bases[1] - 1)[0].locate(bases[1] - 1)
    assert last is not None
    os.truncate(folder / f"{0:020d}.log", last.position)
    recovered = make_log(folder, SMALL, clean=False)
    assert recovered.end_offset == bases[1] - 1
    assert len(recovered.segments) == 1


def test_a_compacted_log_may_have_gaps(folder: Path) -> None:
    compacted = LogConfig(segment_bytes=1000, cleanup_policy=frozenset({"compact"}))
    log = make_log(folder, compacted)
    log.append_as_follower(batch(b"a", base_offset=10, partition_leader_epoch=0), now_ms=NOW)
    log.roll(NOW, at=20)
    log.append_as_follower(batch(b"b", base_offset=25, partition_leader_epoch=0), now_ms=NOW)
    assert [record.offset for record in read_all(make_log(folder, compacted, clean=False))] == [10, 25]


def test_a_log_that_was_compacted_before_keeps_its_gaps_without_a_recovery_point(folder: Path) -> None:
    """The topic is not compacted any more, and the checkpoint with the recovery points was damaged."""
    log = make_log(folder, SMALL)
    log.append_as_follower(batch(b"a", base_offset=10, partition_leader_epoch=0), now_ms=NOW)
    log.roll(NOW, at=20)
    log.append_as_follower(batch(b"b", base_offset=25, partition_leader_epoch=0), now_ms=NOW)
    recovered = make_log(folder, SMALL, clean=False, known=KnownOffsets(first_dirty_offset=20))
    assert [record.offset for record in read_all(recovered)] == [10, 25]


def test_a_transaction_that_a_crash_interrupted_is_still_open(folder: Path) -> None:
    log = make_log(folder, SMALL)
    append(log, batch(b"open", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True))
    for number in range(50):
        append(log, idempotent(number))
    recovered = make_log(folder, SMALL, clean=False, known=KnownOffsets(recovery_point=40, high_watermark=51))
    assert (recovered.high_watermark, recovered.last_stable_offset) == (51, 0)


# -- checkpoints


def test_the_log_start_offset_is_remembered(folder: Path) -> None:
    close_log(fill(folder))
    log = make_log(folder, SMALL, known=KnownOffsets(log_start_offset=30, high_watermark=40))
    assert (log.log_start_offset, log.high_watermark) == (30, 40)


def test_the_high_watermark_stays_within_the_log(folder: Path) -> None:
    close_log(fill(folder))
    assert make_log(folder, SMALL, known=KnownOffsets(high_watermark=999)).high_watermark == 52


def test_a_log_that_lost_more_than_was_deleted_begins_there(folder: Path) -> None:
    append(make_log(folder), batch(b"a"), batch(b"b"))
    log = make_log(folder, clean=False, known=KnownOffsets(log_start_offset=7))
    assert (log.log_start_offset, log.end_offset) == (7, 7)
    assert append(log, batch(b"c")) == [7]


# -- leftovers


def test_leftovers_of_deletion_and_compaction_are_removed(folder: Path) -> None:
    log = fill(folder)
    before = facts(log)
    close_log(log)
    leftovers = [
        "00000000000000000003.log.deleted",
        "00000000000000000003.index.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.swap",
        "00000000000000000777.index",
        "00000000000000000777.snapshot.tmp",
    ]
    for name in leftovers:
        (folder / name).write_bytes(b"anything")
    assert facts(make_log(folder, SMALL)) == before
    assert not {path.name for path in folder.iterdir()} & set(leftovers)


@pytest.mark.usefixtures("leaves_damage")
@pytest.mark.parametrize("renamed", range(5))
def test_an_interrupted_swap_is_finished(folder: Path, tmp_path: Path, renamed: int) -> None:
    # Compaction put what is left of the first two segments into one.
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    rest = [record for record in read_all(log) if record.offset >= bases[2]]
    close_log(log)
    compacted = make_log(tmp_path / "compacted")
    compacted.append_as_follower(batch(b"kept", base_offset=bases[2] - 1, partition_leader_epoch=0), now_ms=NOW)
    close_log(compacted)
    for suffix in (".index", ".timeindex", ".log"):
        shutil.copy(tmp_path / "compacted" / f"{0:020d}{suffix}", folder / f"{0:020d}{suffix}.swap")
    # The crash came after some of the old files were renamed.
    old = [f"{base:020d}{suffix}" for base in bases[:2] for suffix in (".index", ".log")]
    for name in old[:renamed]:
        os.replace(folder / name, folder / f"{name}.deleted")
    log = make_log(folder, SMALL)
    assert [(record.offset, record.value) for record in read_all(log)] == [
        (bases[2] - 1, b"kept"),
        *((record.offset, record.value) for record in rest),
    ]
    assert [segment.base_offset for segment in log.segments] == [0, *bases[2:]]
    assert not [path.name for path in folder.iterdir() if path.name.endswith((".swap", ".deleted"))]

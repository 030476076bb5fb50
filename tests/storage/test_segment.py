"""barnabas.storage.segment: one file of batches and its indexes."""

import os
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.indexes.transaction_index import AbortedTransaction
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment import Segment
from tests.storage.support import NOW, batch

INTERVAL = 200


def add(segment: Segment, offset: int, *, timestamp: int = NOW) -> None:
    records = batch(b"%03d" % offset, base_offset=offset, timestamp=timestamp)
    segment.append([records], len(records), [(offset, timestamp, len(records))], INTERVAL)


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Twenty batches of one record, at offsets 100, 102, 104 and so on, each a millisecond later."""
    segment = Segment.create(str(tmp_path), 100, OpenFiles(FileSystem()), NOW)
    for number in range(20):
        add(segment, 100 + 2 * number, timestamp=NOW + number)
    return segment


def reopened(segment: Segment, most_files: int = 100) -> Segment:
    sizes = {path.suffix: path.stat().st_size for path in Path(segment.folder).iterdir()}
    return Segment(segment.folder, segment.base_offset, OpenFiles(FileSystem(), most_files), sizes)


def test_an_index_entry_per_interval_of_bytes(segment: Segment) -> None:
    size = len(batch(b"000"))
    # The first batch after more than 200 bytes gets an entry, with its last offset and its position.
    step = INTERVAL // size + 1
    entries = [(100 + 2 * number, number * size) for number in range(step, 20, step)]
    assert segment.offset_index.entries == len(entries)
    assert segment.offset_index.last() == entries[-1]
    for offset, position in entries:
        assert segment.offset_index.lookup(offset)[1] == position
        assert segment.offset_index.lookup(offset - 1)[1] < position
    assert segment.time_index.entries == len(entries)


def test_it_is_the_same_after_it_was_completed(segment: Segment) -> None:
    segment.become_inactive()
    again = reopened(segment)
    assert again.size == segment.size
    assert again.max_timestamp == NOW + 19
    assert again.offset_of_max_timestamp == 138
    assert again.first_timestamp == NOW
    assert again.read_next_offset() == 139
    assert [again.locate(offset) for offset in range(100, 142)] == [
        segment.locate(offset) for offset in range(100, 142)
    ]
    assert again.indexes_are_sound


def test_the_last_time_entry_is_the_latest_time(segment: Segment) -> None:
    before = segment.time_index.last()
    segment.become_inactive()
    assert before < segment.time_index.last() == (NOW + 19, 138)


def test_an_empty_segment(tmp_path: Path) -> None:
    segment = Segment.create(str(tmp_path), 7, OpenFiles(FileSystem()), NOW)
    assert segment.read_next_offset() == 7
    assert segment.locate(7) is None
    assert segment.max_timestamp == -1
    assert segment.first_timestamp is None
    assert segment.indexes_are_sound


def test_a_segment_begins_empty_whatever_was_there(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000007.log").write_bytes(b"left over")
    Segment.create(str(tmp_path), 7, OpenFiles(FileSystem()), NOW)
    assert (tmp_path / "00000000000000000007.log").read_bytes() == b""


def test_indexes_begin_empty_whatever_was_there(tmp_path: Path) -> None:
    for suffix in "index", "timeindex", "txnindex":
        (tmp_path / f"00000000000000000100.{suffix}").write_bytes(bytes(1000))
    segment = Segment.create(str(tmp_path), 100, OpenFiles(FileSystem()), NOW)
    for number in range(20):
        add(segment, 100 + number, timestamp=NOW + number)
    segment.transaction_index.append(AbortedTransaction(1, 100, 110, 111))
    segment.become_inactive()
    for index in segment.indexes:
        assert os.path.getsize(index.path) == index.size
    segment.unlink()


@pytest.mark.parametrize("offset", [100, 101, 120, 121, 138, 139])
def test_truncation(segment: Segment, offset: int) -> None:
    segment.truncate_to(offset)
    kept = [at for at in range(100, 140, 2) if at < offset]
    assert [header.base_offset for _, header in segment.headers()] == kept
    assert os.path.getsize(segment.path) == segment.size
    assert segment.read_next_offset() == (kept[-1] + 1 if kept else 100)
    assert segment.max_timestamp == (NOW + len(kept) - 1 if kept else -1)
    assert segment.locate(offset) is None
    add(segment, 140)
    found = segment.locate(140)
    assert found is not None
    assert read_header(os.pread(segment.handle.fd, found.size, found.position)).base_offset == 140


def test_reading_works_with_one_open_file_at_a_time(segment: Segment) -> None:
    """Whatever opens a file may close another: one that is being read stays open nevertheless."""
    for offset in range(140, 540, 2):  # more than one look at the file sees
        add(segment, offset)
    segment.become_inactive()
    again = reopened(segment, most_files=1)
    for offset in (138, 100, 120):
        found = again.locate(offset)
        assert found is not None
        assert found == segment.locate(offset)
    read = []
    for _, header in again.headers():
        read.append(header.base_offset)
        again.offset_index.lookup(120)[1]
    assert read == list(range(100, 540, 2))


def test_files_change_their_names_and_stay_readable(segment: Segment) -> None:
    segment.become_inactive()
    segment.rename("", ".deleted")
    assert {name.rpartition(".")[2] for name in os.listdir(segment.folder)} == {"deleted"}
    assert segment.locate(120) is not None
    handle = segment.handle
    for path in segment.drop():
        os.unlink(path)
    assert os.listdir(segment.folder) == []
    assert read_header(os.pread(handle.fd, 100, 0)).base_offset == 100

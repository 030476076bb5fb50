"""barnabas.storage.indexes.time_index"""

import struct
from pathlib import Path

import pytest

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.indexes.time_index import TimeIndex
from barnabas.storage.open_files import OpenFiles

BASE = 100


@pytest.fixture
def index(tmp_path: Path) -> TimeIndex:
    index = TimeIndex(str(tmp_path / "index"), BASE, OpenFiles(FileSystem()))
    for timestamp, offset in [(1000, 110), (2000, 120), (2000, 130), (1500, 140), (3000, 150)]:
        index.maybe_append(timestamp, offset)
    return index


def test_only_rising_times_get_an_entry(index: TimeIndex) -> None:
    index.save()
    expected = struct.pack(">qiqiqi", 1000, 10, 2000, 20, 3000, 50)
    assert Path(index.path).read_bytes() == expected


def test_lookup_gives_an_offset_before_which_all_is_earlier(index: TimeIndex) -> None:
    offsets = {time: index.lookup(time) for time in (-1, 0, 1000, 1001, 2000, 2001, 9999)}
    assert offsets == {-1: 100, 0: 100, 1000: 100, 1001: 110, 2000: 110, 2001: 120, 9999: 150}


def test_records_without_a_time_leave_no_trace(tmp_path: Path) -> None:
    index = TimeIndex(str(tmp_path / "index"), BASE, OpenFiles(FileSystem()))
    index.maybe_append(-1, 110)
    assert index.entries == 0
    assert index.last() == (-1, BASE)


def test_truncation_goes_by_offset(index: TimeIndex) -> None:
    index.truncate_to(120)
    assert index.last() == (1000, 110)
    index.truncate_to(0)
    assert index.last() == (-1, BASE)

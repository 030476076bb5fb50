"""barnabas.storage.indexes.offset_index"""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.indexes.offset_index import OffsetIndex
from barnabas.storage.open_files import OpenFiles

BASE = 1 << 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.index"


def make_index(path: Path, entries: list[tuple[int, int]], size: int | None = None) -> OffsetIndex:
    index = OffsetIndex(str(path), BASE, OpenFiles(FileSystem()), size)
    for offset, position in entries:
        index.append(BASE + offset, position)
    return index


def test_an_entry_is_a_relative_offset_and_a_position(path: Path) -> None:
    index = make_index(path, [(9, 4100), (2**31 - 1, 2**31 - 1)])
    index.save()
    assert path.read_bytes() == struct.pack(">iiii", 9, 4100, 2**31 - 1, 2**31 - 1)


def test_lookup_begins_at_the_entry_before(path: Path) -> None:
    index = make_index(path, [(10, 4000), (20, 8000)])
    positions = {offset: index.lookup(BASE + offset)[1] for offset in (0, 9, 10, 11, 19, 20, 21, 2**40)}
    assert positions == {0: 0, 9: 0, 10: 4000, 11: 4000, 19: 4000, 20: 8000, 21: 8000, 2**40: 8000}
    assert index.lookup(BASE - 1)[1] == 0


@given(st.lists(st.integers(0, 1000), unique=True).map(sorted), st.integers(-2, 1002))
def test_lookup_agrees_with_a_look_at_every_entry(offsets: list[int], wanted: int) -> None:
    index = make_index(Path("unused"), [(offset, 10 * offset) for offset in offsets])
    assert index.lookup(BASE + wanted)[1] == max((10 * offset for offset in offsets if offset <= wanted), default=0)


def test_it_grows_in_memory_and_is_the_same_mapped(path: Path) -> None:
    index = make_index(path, [(10, 4000), (20, 8000)])
    assert not path.exists()
    index.become_inactive()
    assert index.lookup(BASE + 15)[1] == 4000
    index.append(BASE + 30, 12000)
    assert index.lookup(BASE + 30)[1] == 12000
    index.save()
    assert path.stat().st_size == 24
    reopened = make_index(path, [], size=24)
    assert reopened.last() == (BASE + 30, 12000)


def test_truncation_reaches_the_file(path: Path) -> None:
    index = make_index(path, [(10, 4000), (20, 8000), (30, 12000)])
    index.become_inactive()
    index.truncate_to(BASE + 20)
    assert index.entries == 1
    assert path.stat().st_size == 8
    index.append(BASE + 25, 9000)
    index.become_inactive()
    assert index.last() == (BASE + 25, 9000)
    assert path.read_bytes() == struct.pack(">iiii", 10, 4000, 25, 9000)


def test_a_rebuilt_index_forgets_its_file(path: Path) -> None:
    path.write_bytes(b"nonsense")
    index = make_index(path, [], size=8)
    index.reset()
    assert index.lookup(BASE + 5)[1] == 0
    index.save()
    assert path.read_bytes() == b""


def test_an_empty_index_has_a_file(path: Path) -> None:
    make_index(path, []).save()
    assert path.read_bytes() == b""
    assert make_index(path, [], size=0).lookup(BASE + 5)[1] == 0


def test_a_file_shorter_than_it_was(path: Path) -> None:
    path.write_bytes(bytes(8))
    with pytest.raises(CorruptFile):
        make_index(path, [], size=16).lookup(BASE)

"""barnabas.storage.batch_scan: batches found by their headers."""

from pathlib import Path

import pytest

from barnabas.storage.batch_scan import find_batch, scan_headers
from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import Handle
from tests.storage.support import batch

# From less than a window to much more: 8 KiB are read at a time.
SIZES = [0, 10, 3000, 8000, 8192, 20_000, 5, 8100, 1]


@pytest.fixture
def batches() -> list[bytes]:
    return [bytes(batch(bytes(size), b"", base_offset=10 * number)) for number, size in enumerate(SIZES)]


@pytest.fixture
def file(tmp_path: Path, batches: list[bytes]) -> Handle:
    path = tmp_path / "segment"
    path.write_bytes(b"".join(batches))
    return Handle(FileSystem(), str(path))


def test_every_batch_is_seen_once(file: Handle, batches: list[bytes]) -> None:
    size = sum(map(len, batches))
    seen = list(scan_headers(file, 0, size))
    assert [header.base_offset for _, header in seen] == [10 * number for number in range(len(SIZES))]
    assert [header.size for _, header in seen] == [len(data) for data in batches]
    assert [position for position, _ in seen] == [sum(map(len, batches[:number])) for number in range(len(SIZES))]


def test_a_batch_is_found_by_each_of_its_offsets(file: Handle, batches: list[bytes]) -> None:
    size = sum(map(len, batches))
    for offset in range(10 * len(SIZES)):
        # Offsets 2 to 9 of each ten are missing: the next batch is the first to reach that far.
        number = offset // 10 + (offset % 10 > 1)
        found = find_batch(file, 0, size, offset)
        if number == len(SIZES):
            assert found is None
        else:
            assert found == (sum(map(len, batches[:number])), len(batches[number]))


def test_nothing_is_found_beyond_the_end(file: Handle, batches: list[bytes]) -> None:
    assert find_batch(file, 0, len(batches[0]), 10) is None
    assert list(scan_headers(file, 0, 0)) == []


@pytest.mark.parametrize("size", [30, 100, 3100])
def test_an_end_within_a_batch_is_damage(file: Handle, size: int) -> None:
    with pytest.raises(CorruptFile):
        list(scan_headers(file, 0, size))


@pytest.mark.parametrize("length", [0, 48, 2**32 - 1])
def test_a_length_that_leads_nowhere_is_damage(tmp_path: Path, length: int) -> None:
    path = tmp_path / "segment"
    damaged = bytearray(batch())
    damaged[8:12] = length.to_bytes(4)
    path.write_bytes(damaged + bytes(batch()))
    file = Handle(FileSystem(), str(path))
    with pytest.raises(CorruptFile):
        list(scan_headers(file, 0, path.stat().st_size))
    with pytest.raises(CorruptFile):
        find_batch(file, 0, path.stat().st_size, 99)

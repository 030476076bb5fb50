"""barnabas.storage.indexes.transaction_index"""

from pathlib import Path

import pytest

from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.storage.open_files import OpenFiles

FIRST = AbortedTransaction(producer_id=4, first_offset=0, last_offset=10, last_stable_offset=11)
SECOND = AbortedTransaction(producer_id=5, first_offset=5, last_offset=20, last_stable_offset=15)
THIRD = AbortedTransaction(producer_id=6, first_offset=15, last_offset=30, last_stable_offset=31)

# What Apache Kafka 4.3.1 wrote for the transaction of producer 4 at offsets 0 to 10.
KAFKA_ENTRY = bytes.fromhex("000000000000000000040000000000000000000000000000000a000000000000000b")


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    index = TransactionIndex(str(tmp_path / "index"), 0, OpenFiles(FileSystem()))
    for aborted in (FIRST, SECOND, THIRD):
        index.append(aborted)
    return index


def collected(index: TransactionIndex, first_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
    found: list[AbortedTransaction] = []
    complete = index.collect(first_offset, end_offset, found)
    return found, complete


def test_an_entry_is_that_of_kafka(index: TransactionIndex) -> None:
    index.save()
    assert Path(index.path).read_bytes()[:34] == KAFKA_ENTRY


def test_there_is_no_file_without_entries(tmp_path: Path) -> None:
    index = TransactionIndex(str(tmp_path / "index"), 0, OpenFiles(FileSystem()))
    index.become_inactive()
    assert list(index) == []
    assert not Path(index.path).exists()
    index.append(FIRST)
    index.become_inactive()
    assert list(index) == [FIRST]


def test_a_reader_gets_those_that_touch_its_range(index: TransactionIndex) -> None:
    assert collected(index, 0, 5) == ([FIRST], True)
    assert collected(index, 0, 11) == ([FIRST], True)
    assert collected(index, 11, 14) == ([SECOND], True)
    assert collected(index, 11, 16) == ([SECOND, THIRD], True)
    assert collected(index, 25, 40) == ([THIRD], False)


def test_truncation_forgets_what_is_no_longer_aborted(index: TransactionIndex) -> None:
    index.truncate_to(20)
    assert list(index) == [FIRST]


def test_a_version_that_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"\x00\x01" + KAFKA_ENTRY[2:])
    with pytest.raises(CorruptFile, match="version 1"):
        list(TransactionIndex(str(path), 0, OpenFiles(FileSystem()), 34))

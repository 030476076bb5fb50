"""barnabas.storage.checkpoints"""

from pathlib import Path

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.checkpoints import EpochEntry, format_epochs, read_epochs, read_offsets, write_offsets
from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_offsets_there_and_back(path: Path) -> None:
    offsets = {TopicPartition("a", 0): 5, TopicPartition("some.topic-1", 12): 1 << 40}
    write_offsets(FileSystem(), str(path), offsets)
    assert path.read_text() == "0\n2\na 0 5\nsome.topic-1 12 1099511627776\n"
    assert read_offsets(str(path)) == offsets


def test_epochs_there_and_back(path: Path) -> None:
    entries = [EpochEntry(0, 0), EpochEntry(3, 17)]
    path.write_bytes(format_epochs(entries))
    assert path.read_text() == "0\n2\n0 0\n3 17\n"
    assert read_epochs(str(path)) == entries


@pytest.mark.parametrize("text", [None, "", "0\n0\n"])
def test_a_missing_or_empty_file_has_no_offsets(path: Path, text: str | None) -> None:
    if text is not None:
        path.write_text(text)
    assert read_offsets(str(path)) == {}


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "x",
        "0\n",
        "0\nx\n",
        "0\n2\na 0 5\n",
        "0\n1\na 0\n",
        "0\n1\na 0 -5\n",
        "0\n1\na 0 5 6\n",
        "0\n1\na 0 1_0\n",
        "0\n1\na 0 1",  # a torn file, of "a 0 17" for example
    ],
)
def test_damage_is_noticed(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(CorruptFile):
        read_offsets(str(path))


@pytest.mark.parametrize("text", ["0\n2\n3 17\n4 4", "0\n2\n3 17\n4 4\n", "0\n2\n3 17\n3 20\n", "0\n2\n3 17\n4 17\n"])
def test_epochs_that_do_not_ascend_are_damage(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(CorruptFile):
        read_epochs(str(path))


def test_bytes_that_are_not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptFile):
        read_epochs(str(path))

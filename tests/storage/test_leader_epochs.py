"""barnabas.storage.leader_epochs"""

from pathlib import Path

import pytest

from barnabas.storage.checkpoints import EpochEntry, read_epochs
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(str(tmp_path), FileSystem(), [])
    epochs.assign(1, 0)
    epochs.assign(3, 10)
    epochs.assign(7, 20)
    return epochs


def test_what_is_assigned_is_in_the_file(epochs: LeaderEpochs) -> None:
    assert read_epochs(epochs.path) == [(1, 0), (3, 10), (7, 20)]


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),
        (1, (1, 10)),
        (2, (1, 10)),
        (3, (3, 20)),
        (5, (3, 20)),
        (7, (7, 25)),
        (8, (-1, -1)),
    ],
)
def test_where_an_epoch_ended(epochs: LeaderEpochs, epoch: int, expected: tuple[int, int]) -> None:
    assert epochs.end_offset_for(epoch, log_end_offset=25) == expected


def test_without_epochs_nothing_is_known(tmp_path: Path) -> None:
    assert LeaderEpochs(str(tmp_path), FileSystem(), []).end_offset_for(0, 5) == (-1, -1)


def test_the_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 19, 20, 99)] == [1, 1, 3, 3, 7, 7]


def test_the_same_epoch_again_changes_nothing(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 22)
    assert epochs.entries[-1] == (7, 20)


def test_what_contradicts_a_new_epoch_is_forgotten(epochs: LeaderEpochs) -> None:
    epochs.assign(8, 10)
    assert epochs.entries == [EpochEntry(1, 0), EpochEntry(8, 10)]


def test_truncation_from_the_end(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(20)
    assert epochs.entries == [(1, 0), (3, 10)]
    epochs.truncate_from_end(5)
    assert read_epochs(epochs.path) == [(1, 0)]


def test_truncation_from_the_start(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_start(15)
    assert epochs.entries == [(3, 15), (7, 20)]
    epochs.truncate_from_start(20)
    assert read_epochs(epochs.path) == [(7, 20)]

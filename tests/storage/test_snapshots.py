"""barnabas.storage.snapshots: the producer snapshots in a folder."""

import os
from pathlib import Path

import pytest

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.producer_state import Producer, ProducerState
from barnabas.storage.snapshots import Snapshots


def state_of(producer_id: int) -> ProducerState:
    state = ProducerState()
    state.producers[producer_id] = Producer(producer_epoch=0)
    return state


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    """At 10, 20 and 30, each with a producer of that id."""
    snapshots = Snapshots(str(tmp_path), FileSystem(), [])
    for offset in (20, 10, 30):
        snapshots.take(offset, state_of(offset))
    return snapshots


def latest(snapshots: Snapshots, up_to: int) -> tuple[int, list[int]] | None:
    found = snapshots.load_latest(up_to)
    return found and (found[0], list(found[1].producers))


def names(snapshots: Snapshots) -> list[int]:
    folder = os.path.dirname(snapshots.path(0))
    return sorted(int(name.partition(".")[0]) for name in os.listdir(folder))


def test_the_latest_up_to_an_offset(snapshots: Snapshots) -> None:
    assert latest(snapshots, 9) is None
    assert latest(snapshots, 10) == (10, [10])
    assert latest(snapshots, 29) == (20, [20])
    assert latest(snapshots, 99) == (30, [30])


def test_a_damaged_one_is_deleted_and_an_older_one_taken(snapshots: Snapshots) -> None:
    with open(snapshots.path(30), "r+b") as file:
        file.truncate(20)
    os.unlink(snapshots.path(20))
    assert latest(snapshots, 99) == (10, [10])
    assert names(snapshots) == snapshots.offsets == [10]


def test_deletion(snapshots: Snapshots) -> None:
    snapshots.delete_after(20)
    assert names(snapshots) == [10, 20]
    snapshots.delete_up_to(10)
    assert names(snapshots) == [20]


def test_what_was_written_is_to_be_synced_unless_it_is_gone(snapshots: Snapshots) -> None:
    assert snapshots.unsynced == [snapshots.path(20), snapshots.path(10), snapshots.path(30)]
    snapshots.delete_after(10)
    assert snapshots.unsynced == [snapshots.path(10)]

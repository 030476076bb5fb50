"""barnabas.storage.aborted_lookup: of many aborted transactions, those that a reader must know."""

import random
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.storage.aborted_lookup import aborted_in, aborted_in_slice
from barnabas.storage.config import LogConfig
from barnabas.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import append, batch, bytes_of, make_log
from tests.support.compiled import replaces_a_method


def send(log: Log, producer_id: int) -> int:
    (offset,) = append(
        log,
        batch(b"in it", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True),
        origin=AppendOrigin.COORDINATOR,
    )
    return offset


def end(log: Log, producer_id: int, *, commit: bool = False) -> None:
    marker = build_end_transaction_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        timestamp=1,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
    )
    append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)


def told(aborted: list[AbortedTransaction]) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in aborted]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Transactions of eight producers that overlap, over several segments: half of them aborted."""
    log = make_log(
        tmp_path / "topic-0", LogConfig(segment_bytes=4096, index_interval_bytes=1, segment_index_bytes=2**20)
    )
    chance = random.Random(7)
    under_way: set[int] = set()
    for _ in range(400):
        producer_id = chance.randrange(8)
        if producer_id in under_way and chance.random() < 0.5:
            end(log, producer_id, commit=chance.random() < 0.5)
            under_way.discard(producer_id)
        else:
            send(log, producer_id)
            under_way.add(producer_id)
    for producer_id in under_way:
        end(log, producer_id)
    assert len(log.segments) > 3
    return log


def test_exactly_those_that_touch_the_range(log: Log) -> None:
    all_of_them = [aborted for segment in log.segments for aborted in segment.transaction_index]
    for first in range(0, log.end_offset, 7):
        for end_offset in (first + 1, first + 10, first + 100, log.end_offset):
            expected = [each for each in all_of_them if each.last_offset >= first and each.first_offset < end_offset]
            assert aborted_in(log.segments, first, end_offset) == expected


def test_what_is_sent_is_what_counts(log: Log) -> None:
    """A reader gets all that it needs and, with one index entry per batch, hardly anything else."""
    for offset in range(0, log.end_offset, 5):
        stretch = log.read(offset, 500, upper_bound=log.end_offset)
        assert stretch is not None
        view, last_offset = memoryview(bytes_of(stretch)), offset
        while len(view) >= 61 and len(view) >= read_header(view).size:
            last_offset = read_header(view).last_offset
            view = view[read_header(view).size :]
        found = told(aborted_in_slice(log.segments, offset, stretch, log.end_offset))
        needed = told(aborted_in(log.segments, offset, last_offset + 1))
        assert set(needed) <= set(found)
        assert set(found) <= set(told(aborted_in(log.segments, offset, last_offset + 3)))


def test_readers_are_held_to_their_bound(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0")
    send(log, 1)
    end(log, 1)
    send(log, 2)
    end(log, 2)
    stretch = log.read(0, 10_000, upper_bound=2)
    assert stretch is not None
    assert told(aborted_in_slice(log.segments, 0, stretch, 2)) == [(1, 0)]


@replaces_a_method
def test_only_as_many_are_looked_at_as_there_are_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path / "topic-0")
    for producer_id in range(2000):
        send(log, producer_id)
        end(log, producer_id)
    looked_at = []
    original = TransactionIndex._from

    def counted(index, entry):  # type: ignore[no-untyped-def]
        for aborted in original(index, entry):
            looked_at.append(aborted)
            yield aborted

    monkeypatch.setattr(TransactionIndex, "_from", counted)
    assert told(aborted_in(log.segments, 2000, 2004)) == [(1000, 2000), (1001, 2002)]
    assert len(looked_at) == 2


def test_a_log_without_aborted_transactions_tells_none(tmp_path: Path) -> None:
    log = make_log(tmp_path / "topic-0")
    send(log, 1)
    end(log, 1, commit=True)
    stretch = log.read(0, 1000, upper_bound=2)
    assert stretch is not None
    assert aborted_in_slice(log.segments, 0, stretch, 2) == []

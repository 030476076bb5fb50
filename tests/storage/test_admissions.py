"""barnabas.storage.admissions: who may begin a transaction in a log."""

from pathlib import Path

import pytest

from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.storage.admissions import Admissions
from barnabas.storage.errors import InvalidTransactionState, OutOfOrderSequence
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from tests.storage.support import append, batch, make_log, refusal

PRODUCER = 7


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = make_log(tmp_path / "topic-0")
    log.admissions = Admissions()
    return log


def first(sequence: int = 0, epoch: int = 0, *, transactional: bool = True) -> memoryview:
    return batch(producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)


def try_out(log: Log, sequence: int = 0, epoch: int = 0, *, from_zero: bool = False, now_ms: int = 0) -> Admissions:
    assert log.admissions is not None
    log.admissions.try_out(PRODUCER, epoch, sequence, from_zero=from_zero, now_ms=now_ms)
    return log.admissions


def end(log: Log, epoch: int = 0, *, transaction_version: int = 0) -> None:
    marker = build_end_transaction_marker(
        ControlType.COMMIT, timestamp=1, producer_id=PRODUCER, producer_epoch=epoch, coordinator_epoch=0
    )
    append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR, transaction_version=transaction_version)


def test_no_connection_starts_before_it_is_admitted(log: Log) -> None:
    assert isinstance(refusal(log, first()), InvalidTransactionState)
    admissions = try_out(log)
    assert isinstance(refusal(log, first()), InvalidTransactionState)
    admissions.admit(PRODUCER, 0)
    assert append(log, first()) == [0]


def test_once_started_a_transaction_needs_no_admission(log: Log) -> None:
    try_out(log).admit(PRODUCER, 0)
    assert append(log, first(), first(1)) == [0, 1]
    assert log.admissions is not None
    assert len(log.admissions) == 0
    assert append(log, first(2)) == [2]


def test_nothing_is_admitted_after_the_end(log: Log) -> None:
    admissions = try_out(log)
    admissions.admit(PRODUCER, 0)
    end(log)
    assert isinstance(refusal(log, first()), InvalidTransactionState)
    assert not admissions.is_admitted(PRODUCER, 0)


def test_the_end_of_one_transaction_does_not_touch_the_next(log: Log) -> None:
    """With an epoch for each transaction, the marker has the epoch of the next one, whose batch may wait already."""
    admissions = try_out(log, epoch=4)
    admissions.admit(PRODUCER, 4)
    append(log, first(epoch=4))
    try_out(log, epoch=5, from_zero=True)  # the coordinator is asked, and says that the last one is still ending
    end(log, epoch=5, transaction_version=2)
    admissions.admit(PRODUCER, 5)
    end(log, epoch=5, transaction_version=2)  # the same marker again: its answer was lost
    assert append(log, first(epoch=5)) == [3]


def test_another_epoch_is_another_transaction(log: Log) -> None:
    admissions = try_out(log, epoch=0)
    admissions.admit(PRODUCER, 0)
    assert not admissions.is_admitted(PRODUCER, 1)
    assert isinstance(refusal(log, first(epoch=1)), InvalidTransactionState)
    try_out(log, epoch=1)
    admissions.admit(PRODUCER, 0)  # an answer that comes too late
    assert not admissions.is_admitted(PRODUCER, 1)


def test_a_zombie_does_not_undo_what_its_successor_was_told(log: Log) -> None:
    admissions = try_out(log, epoch=1)
    admissions.admit(PRODUCER, 1)
    try_out(log, epoch=0)
    assert append(log, first(epoch=1)) == [0]


def test_a_zombie_does_not_let_a_gap_pass(log: Log) -> None:
    admissions = try_out(log, 0, epoch=1)
    try_out(log, 0, epoch=0)
    try_out(log, 1, epoch=1)
    admissions.admit(PRODUCER, 1)
    assert isinstance(refusal(log, first(1, epoch=1)), OutOfOrderSequence)
    assert append(log, first(epoch=1)) == [0]
    assert len(admissions) == 0


def test_what_was_refused_comes_before_what_followed_it(log: Log) -> None:
    """A producer sends 5, 6 and 7 at once; 5 is refused, and the coordinator changes its mind before 6 comes."""
    admissions = try_out(log, 5)
    try_out(log, 6)
    admissions.admit(PRODUCER, 0)
    assert isinstance(refusal(log, first(6)), OutOfOrderSequence)
    assert append(log, first(5), first(6)) == [0, 1]


def test_with_an_epoch_for_each_transaction_an_unknown_producer_starts_at_zero(log: Log) -> None:
    try_out(log, 3, from_zero=True).admit(PRODUCER, 0)
    assert isinstance(refusal(log, first(3)), OutOfOrderSequence)
    assert append(log, first(0)) == [0]


def test_repetitions_need_not_be_admitted(log: Log) -> None:
    try_out(log).admit(PRODUCER, 0)
    append(log, first())
    end(log)
    (result,) = log.append([first()], leader_epoch=0, now_ms=0)
    assert not isinstance(result, Exception)
    assert (result.base_offset, result.duplicate) == (0, True)


def test_others_than_transactions_need_no_admission(log: Log) -> None:
    assert append(log, first(transactional=False)) == [0]
    assert append(
        log,
        batch(producer_id=8, producer_epoch=0, base_sequence=-1, transactional=True),
        origin=AppendOrigin.COORDINATOR,
    ) == [1]


def test_a_producer_that_does_not_return_is_forgotten(log: Log) -> None:
    admissions = try_out(log, now_ms=1000)
    try_out(log, epoch=1, now_ms=1500)
    admissions.forget_expired(now_ms=1999, expiration_ms=1000)
    assert len(admissions) == 2
    admissions.forget_expired(now_ms=2000, expiration_ms=1000)
    assert len(admissions) == 1
    admissions.forget_expired(now_ms=2500, expiration_ms=1000)
    assert len(admissions) == 0

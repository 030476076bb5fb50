"""barnabas.storage.cleaner.transactions: what was aborted, and which markers have nothing left to say."""

from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader
from barnabas.protocol.records.control import ControlType, EndTransactionMarker
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.indexes.transaction_index import AbortedTransaction

COMMIT = EndTransactionMarker(ControlType.COMMIT, 0, 0)
ABORT = EndTransactionMarker(ControlType.ABORT, 0, 0)
ABORTED = AbortedTransaction(5, 10, 20, 21)


def batch(producer_id: int, base_offset: int, *, control: bool = False, transactional: bool = True) -> BatchHeader:
    attributes = (TRANSACTIONAL_FLAG if transactional else 0) | (CONTROL_FLAG if control else 0)
    return BatchHeader(base_offset, 0, 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 1)


def test_batches_up_to_the_marker_of_an_aborted_transaction_are_aborted() -> None:
    transactions = CleanedTransactions([ABORTED])
    assert not transactions.on_data(batch(5, 9))
    assert transactions.on_data(batch(5, 10))
    assert not transactions.on_data(batch(6, 11))
    assert transactions.on_data(batch(5, 19))
    assert transactions.on_marker(batch(5, 20, control=True), ABORT) == (False, ABORTED)
    assert not transactions.on_data(batch(5, 21))


def test_what_is_not_transactional_is_not_aborted() -> None:
    assert not CleanedTransactions([ABORTED]).on_data(batch(5, 12, transactional=False))


def test_a_marker_that_is_gone_still_ends_its_transaction() -> None:
    transactions = CleanedTransactions([ABORTED])
    assert transactions.on_data(batch(5, 12))
    assert not transactions.on_data(batch(5, 25))


def test_a_marker_without_a_transaction_is_no_longer_needed() -> None:
    transactions = CleanedTransactions([ABORTED])
    assert transactions.on_marker(batch(5, 20, control=True), ABORT) == (True, None)
    assert transactions.on_marker(batch(6, 30, control=True), COMMIT) == (True, None)


def test_a_marker_is_needed_as_long_as_there_is_a_batch_before_it() -> None:
    transactions = CleanedTransactions([])
    transactions.on_data(batch(5, 10))
    assert transactions.on_marker(batch(6, 11, control=True), COMMIT) == (True, None)
    assert transactions.on_marker(batch(5, 12, control=True), COMMIT) == (False, None)
    assert transactions.on_marker(batch(5, 13, control=True), COMMIT) == (True, None)


def test_a_control_batch_without_a_marker_is_no_longer_needed() -> None:
    assert CleanedTransactions([]).on_marker(batch(5, 20, control=True), None) == (True, None)


def test_a_producer_may_abort_again_and_again() -> None:
    second = AbortedTransaction(5, 30, 40, 41)
    transactions = CleanedTransactions([second, ABORTED])
    assert transactions.on_data(batch(5, 12))
    transactions.on_marker(batch(5, 20, control=True), ABORT)
    assert not transactions.on_data(batch(5, 25))
    transactions.on_marker(batch(5, 26, control=True), COMMIT)
    assert transactions.on_data(batch(5, 30))
    assert transactions.on_marker(batch(5, 40, control=True), ABORT) == (False, second)

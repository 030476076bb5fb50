"""What happens to a transactional id, from every state, as Apache Kafka 4.3.1 decides."""

import pytest

from barnabas.broker.transaction.decisions import (
    abort_and_fence,
    add_partitions,
    complete,
    end_transaction,
    init_producer_id,
    is_expired,
    is_timed_out,
    needs_producer_id,
    objection,
)
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.harness import ID, T0, T1, metadata

NOW = 2000
IDLE = [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT]
PREPARED = [State.PREPARE_COMMIT, State.PREPARE_ABORT]


# --- InitProducerId ---


def init(current, expected=(-1, -1), new_producer_id=None, timeout_ms=30_000):
    return init_producer_id(current, ID, timeout_ms, *expected, new_producer_id, NOW)


def test_a_new_id_gets_a_producer_in_epoch_0():
    assert init(None, new_producer_id=42) == metadata(
        State.EMPTY, producer_id=42, epoch=0, timeout_ms=30_000, last_update_ms=NOW
    )


@pytest.mark.parametrize("state", IDLE)
def test_the_next_producer_gets_the_next_epoch_and_its_own_timeout(state):
    found = init(metadata(state, epoch=3, client_version=2))
    assert found == metadata(State.EMPTY, epoch=4, timeout_ms=30_000, last_update_ms=NOW, client_version=2)


def test_an_open_transaction_is_aborted_first():
    found = init(metadata(State.ONGOING, epoch=3, partitions=[T0]))
    assert (found.state, found.producer_epoch, found.partitions) == (State.PREPARE_ABORT, 4, {T0})


@pytest.mark.parametrize("state", PREPARED)
def test_while_a_transaction_is_ending_producers_have_to_retry(state):
    assert init(metadata(state)) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_producer_may_continue_after_an_error_in_the_next_epoch():
    found = init(metadata(epoch=3), expected=(7, 3))
    assert (found.producer_id, found.producer_epoch, found.last_producer_epoch) == (7, 4, 3)
    again = init(found, expected=(7, 3))
    assert (again.producer_id, again.producer_epoch, again.last_producer_epoch) == (7, 4, 3)


@pytest.mark.parametrize("expected", [(7, 2), (7, 4), (8, 3), (8, 0)])
def test_a_producer_may_not_continue_if_another_has_started(expected):
    assert init(metadata(epoch=3), expected=expected) == ErrorCode.PRODUCER_FENCED


def test_a_producer_that_continues_with_a_forgotten_id_gets_a_new_one():
    found = init(None, expected=(7, 3), new_producer_id=42)
    assert (found.producer_id, found.producer_epoch) == (42, 0)


@pytest.mark.parametrize("expected", [(-1, -1), (7, 32766)])
def test_when_the_epochs_are_used_up_there_is_a_new_producer_id(expected):
    current = metadata(epoch=32766)
    assert needs_producer_id(current)
    found = init(current, expected, new_producer_id=42)
    assert (found.producer_id, found.producer_epoch, found.previous_producer_id) == (42, 0, 7)


def test_the_request_for_a_new_producer_id_may_be_repeated():
    current = init(metadata(epoch=32766), (7, 32766), new_producer_id=42)
    again = init(current, (7, 32766), new_producer_id=43)
    assert (again.producer_id, again.producer_epoch) == (42, 0)


def test_it_may_be_repeated_only_by_the_producer_that_asked():
    current = init(metadata(epoch=32766), new_producer_id=42)
    assert init(current, (7, 32766), new_producer_id=43) == ErrorCode.PRODUCER_FENCED


def test_the_epoch_that_only_fences_is_given_to_no_producer():
    """The last producer is fenced by an abort, and continues: there is no epoch left for it."""
    fenced = complete(abort_and_fence(metadata(State.ONGOING, epoch=32766), NOW), NOW)
    assert fenced.producer_epoch == 32767
    found = init(fenced, (7, 32766), new_producer_id=42)
    assert (found.producer_id, found.producer_epoch) == (42, 0)
    assert objection(fenced, 7, 32767) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("current", [None, metadata(epoch=32766)])
def test_without_the_new_producer_id_that_it_takes_it_is_asked_for_again(current):
    assert init(current) == ErrorCode.CONCURRENT_TRANSACTIONS


# --- AddPartitionsToTxn ---


def add(current, *partitions, producer=(7, 3), version=2):
    return add_partitions(current, *producer, set(partitions), version, NOW)


@pytest.mark.parametrize("state", IDLE)
def test_a_transaction_starts_with_its_first_partition(state):
    found = add(metadata(state, client_version=2), T0, version=0)
    assert found == metadata(State.ONGOING, partitions=[T0], start_ms=NOW, last_update_ms=NOW, client_version=0)


def test_more_partitions_join_it():
    found = add(metadata(State.ONGOING, partitions=[T0]), T1)
    assert found == metadata(State.ONGOING, partitions=[T0, T1], last_update_ms=NOW, client_version=2)


def test_what_is_part_of_it_need_not_be_written_again():
    assert add(metadata(State.ONGOING, partitions=[T0, T1]), T1) == ErrorCode.NONE
    assert add(metadata(State.ONGOING), *[]) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("current", "producer", "error"),
    [
        (None, (7, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (metadata(), (8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (metadata(), (7, 2), ErrorCode.PRODUCER_FENCED),
        (metadata(), (7, 4), ErrorCode.PRODUCER_FENCED),
        (metadata(State.PREPARE_COMMIT), (7, 3), ErrorCode.CONCURRENT_TRANSACTIONS),
        (metadata(State.PREPARE_ABORT), (7, 3), ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_producers_that_may_not_add_partitions(current, producer, error):
    assert add(current, T0, producer=producer) == error


# --- EndTxn ---


def end(current, commit=True, *, producer=(7, 3), version=2, new_producer_id=None):
    return end_transaction(current, *producer, commit, version, new_producer_id, NOW)


@pytest.mark.parametrize(("commit", "state"), [(True, State.PREPARE_COMMIT), (False, State.PREPARE_ABORT)])
def test_the_end_is_decided(commit, state):
    current = metadata(State.ONGOING, partitions=[T0, T1])
    classic = end(current, commit, version=0)
    assert classic == metadata(state, partitions=[T0, T1], last_update_ms=NOW)
    bumped = end(current, commit)
    assert bumped == metadata(
        state, epoch=4, partitions=[T0, T1], last_update_ms=NOW, client_version=2, last_producer_epoch=3
    )


@pytest.mark.parametrize(
    ("state", "commit", "classic", "bumping"),
    [
        (State.EMPTY, True, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (State.EMPTY, False, ErrorCode.INVALID_TXN_STATE, State.PREPARE_ABORT),
        (State.PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (State.PREPARE_COMMIT, False, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (State.PREPARE_ABORT, True, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (State.PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (State.COMPLETE_COMMIT, True, ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE),
        (State.COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE, State.PREPARE_ABORT),
        (State.COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (State.COMPLETE_ABORT, False, ErrorCode.NONE, State.PREPARE_ABORT),
    ],
)
def test_ending_what_is_not_under_way(state, commit, classic, bumping):
    """The classic protocol repeats the last end; with an epoch for each transaction, only an abort makes sense."""
    assert end(metadata(state), commit, version=0) == classic
    found = end(metadata(state), commit)
    if isinstance(bumping, ErrorCode):
        assert found == bumping
    else:
        assert (found.state, found.producer_epoch, found.start_ms, found.partitions) == (bumping, 4, NOW, set())


@pytest.mark.parametrize(
    ("state", "commit", "error"),
    [
        (State.COMPLETE_COMMIT, True, ErrorCode.NONE),
        (State.COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (State.COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (State.COMPLETE_ABORT, False, ErrorCode.NONE),
        (State.PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (State.PREPARE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (State.PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (State.EMPTY, True, ErrorCode.PRODUCER_FENCED),  # it was aborted to make room for another
        (State.EMPTY, False, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_an_end_whose_answer_was_lost_is_asked_for_again_in_the_epoch_before(state, commit, error):
    assert end(metadata(state, epoch=4, client_version=2), commit, producer=(7, 3)) == error


def test_the_epoch_before_is_of_no_use_in_the_next_transaction():
    assert end(metadata(State.ONGOING, epoch=4, client_version=2), producer=(7, 3)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("current", "producer", "error"),
    [
        (None, (7, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (metadata(State.ONGOING), (8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (metadata(State.ONGOING), (7, 1), ErrorCode.PRODUCER_FENCED),
        (metadata(State.ONGOING), (7, 4), ErrorCode.PRODUCER_FENCED),
        (metadata(State.COMPLETE_COMMIT), (7, 1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_producers_that_may_not_end_a_transaction(current, producer, error, version):
    assert end(current, producer=producer, version=version) == error


def test_with_its_last_epoch_a_producer_gets_a_new_id_when_the_transaction_is_complete():
    decided = end(metadata(State.ONGOING, epoch=32766), producer=(7, 32766), new_producer_id=42)
    assert (decided.producer_id, decided.producer_epoch, decided.next_producer_id) == (7, 32767, 42)
    completed = complete(decided, NOW)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (42, 0, 7)
    assert completed.next_producer_id == -1
    assert end(completed, producer=(7, 32766)) == ErrorCode.NONE
    assert end(completed, False, producer=(7, 32766)) == ErrorCode.INVALID_TXN_STATE


def test_without_a_new_id_at_hand_it_is_asked_for_again():
    assert end(metadata(State.ONGOING, epoch=32766), producer=(7, 32766)) == ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("prepared", "completed"),
    [(State.PREPARE_COMMIT, State.COMPLETE_COMMIT), (State.PREPARE_ABORT, State.COMPLETE_ABORT)],
)
def test_with_all_markers_written_it_is_complete(prepared, completed):
    found = complete(metadata(prepared, partitions=[T0], client_version=2), NOW)
    assert found == metadata(completed, last_update_ms=NOW, client_version=2)


# --- time ---


def test_a_transaction_is_timed_out_when_it_is_open_for_longer_than_its_producer_said():
    assert not is_timed_out(metadata(State.ONGOING), 60_900)
    assert is_timed_out(metadata(State.ONGOING), 60_901)
    for state in State:
        assert is_timed_out(metadata(state), 10**9) == (state == State.ONGOING)


def test_an_abort_without_the_producer_fences_it():
    found = abort_and_fence(metadata(State.ONGOING, partitions=[T0]), NOW)
    assert found == metadata(
        State.PREPARE_ABORT, epoch=4, partitions=[T0], last_update_ms=NOW, client_version=2, last_producer_epoch=3
    )


def test_an_abort_never_runs_out_of_epochs():
    assert abort_and_fence(metadata(State.ONGOING, epoch=32767), NOW).producer_epoch == 32767


def test_an_idle_id_is_expired_when_nothing_was_heard_of_it_for_long():
    assert not is_expired(metadata(), 500, 1499)
    assert is_expired(metadata(), 500, 1500)
    for state in State:
        assert is_expired(metadata(state), 500, 1500) == (state in IDLE)

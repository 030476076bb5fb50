"""The transactional ids of one partition of __transaction_state."""

import pytest

from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState as State
from tests.broker.group.harness import ManualTimers
from tests.broker.transaction.harness import ID, metadata


@pytest.fixture
def finished():
    return []


@pytest.fixture
def timers():
    return ManualTimers(0)


@pytest.fixture
def shard(finished, timers):
    return TransactionShard(finished.append, timers)


def test_the_latest_record_of_an_id_counts(shard):
    shard.replay((ID, metadata(State.EMPTY)))
    shard.replay(("other", metadata(transactional_id="other")))
    shard.replay((ID, metadata(State.ONGOING)))
    assert shard.transactions[ID].state == State.ONGOING
    shard.replay((ID, None))
    shard.replay((ID, None))  # compaction may leave nothing of an id but its tombstone
    assert shard.transactions.keys() == {"other"}


@pytest.mark.parametrize("state", State)
def test_what_is_decided_when_it_is_loaded_is_finished(shard, finished, state):
    shard.replay((ID, metadata(state)))
    assert finished == []
    shard.loaded()
    assert finished == ([metadata(state)] if state.is_prepared else [])


def test_when_it_is_unloaded_nothing_is_retried(shard, timers):
    shard.timers.schedule(("markers", ID), 100, lambda: 1 // 0)
    shard.unloaded()
    timers.advance(1000)

"""The transactional ids of one partition of __transaction_state."""

import pytest

from broker.transaction.shard import TransactionShard
from broker.transaction.states import TransactionState as State
from tests.broker.transaction.harness import ID, metadata


@pytest.fixture
def finished():
    return []


@pytest.fixture
def shard(finished):
    return TransactionShard(finished.append)


def test_the_latest_record_of_an_id_holds(shard):
    shard.replay((ID, metadata(State.EMPTY)))
    shard.replay(("other", metadata(transactional_id="other")))
    shard.replay((ID, metadata(State.ONGOING)))
    assert shard.transactions[ID].state == State.ONGOING
    shard.replay((ID, None))
    shard.replay((ID, None))  # compaction may leave no more of an id than that it is gone
    assert shard.transactions.keys() == {"other"}


@pytest.mark.parametrize("state", State)
def test_what_is_decided_when_it_is_loaded_is_finished(shard, finished, state):
    shard.replay((ID, metadata(state)))
    assert finished == []
    shard.loaded()
    assert finished == ([metadata(state)] if state.is_prepared else [])


def test_which_ids_time_is_over_for(shard):
    shard.replay(("open", metadata(State.ONGOING, transactional_id="open")))
    shard.replay(("idle", metadata(State.EMPTY, transactional_id="idle")))
    assert shard.timed_out(60_900) == []
    assert shard.timed_out(60_901) == ["open"]
    assert shard.expired(5000, 5999) == []
    assert shard.expired(5000, 6000) == ["idle"]


def test_nobody_waits_within_a_shard(shard):
    shard.unloaded()

"""Transactions in words, from the states that their coordinator has written."""

from barnabas.broker.console.transaction_stories import transactions_of
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState as State
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.group.harness import ManualTimers
from tests.broker.transaction.harness import ID, metadata

T0, T1, OFFSETS = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("__consumer_offsets", 3)


def shard_with(*states):
    shard = TransactionShard(lambda prepared: None, ManualTimers(0))
    for at_ms, state, partitions in states:
        shard.replay((ID, metadata(state, partitions=partitions, last_update_ms=at_ms, start_ms=1000)))
    return shard


def test_an_open_one():
    shard = shard_with((500, State.EMPTY, ()), (1000, State.ONGOING, [T0]), (1200, State.ONGOING, [T0, T1]))
    (story,) = transactions_of(shard, ID, 11_000)
    assert story["words"] == [
        "A transaction of producer 7 in epoch 3, with records in 2 partitions.",
        "It has been open for 10.0 s.",
        "If nothing ends it, the broker aborts it in 50.0 s.",
    ]
    assert [step["what"] for step in story["steps"]] == ["begins with t-0", "adds t-1"]
    assert story["ended_ms"] is None


def test_a_committed_one_with_offsets_and_the_next():
    shard = shard_with(
        (1000, State.ONGOING, [T0, OFFSETS]),
        (3000, State.PREPARE_COMMIT, [T0, OFFSETS]),
        (3004, State.COMPLETE_COMMIT, ()),
        (4000, State.ONGOING, [T1]),
    )
    newest, first = transactions_of(shard, ID, 5000)
    assert newest["began_ms"] == 4000
    assert first["words"] == [
        "A transaction of producer 7 in epoch 3, with records in 1 partition and offsets of groups.",
        "After 2.0 s the commit was decided.",
        "The markers were written within 4 ms. Since then it does not hold up readers of committed records.",
    ]


def test_one_that_timed_out():
    shard = shard_with((1000, State.ONGOING, [T0]), (62_000, State.PREPARE_ABORT, [T0]))
    shard.note(62_000, ID, "it was open for more than 60 s: it is aborted")
    shard.note(62_000, "another", "this is about another id")
    (story,) = transactions_of(shard, ID, 62_500)
    assert "Why: it was open for more than 60 s: it is aborted." in story["words"]
    assert story["words"][-1] == "Its markers are being written; readers of committed records wait for them."
    assert [step["kind"] for step in story["steps"]] == ["begin", "note", "abort"]


def test_what_was_before_the_ring_begins_is_left_out():
    shard = shard_with((3000, State.PREPARE_COMMIT, [T0]), (3004, State.COMPLETE_COMMIT, ()))
    assert transactions_of(shard, ID, 5000) == []

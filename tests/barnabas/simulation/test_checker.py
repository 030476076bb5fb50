"""barnabas.simulation.checker: a good history is silent, and each anomaly is found."""

import pytest

from barnabas.simulation.checker import check
from barnabas.simulation.history import (
    Commit,
    CommitSeen,
    History,
    Outcome,
    Ownership,
    Poll,
    Send,
    SentElsewhere,
    Transaction,
    Truncated,
)

T = ("t#1", 0)
U = ("t#1", 1)


class Story:
    """A history, told in short sentences."""

    def __init__(self):
        self.history = History()
        self.now = 0.0
        self.log = {T: [], U: []}

    def send(self, value, offset, key=T, outcome=Outcome.OK, there=True, **fields):
        self.now += 1
        send = Send("p", key, (value,), self.now, ended=self.now + 0.5, outcome=outcome, offset=offset, **fields)
        self.history.sends.append(send)
        if there:
            self.log[key].append((offset, value))
        return send

    def transaction(self, outcome):
        transaction = Transaction("p", len(self.history.transactions), self.now, outcome=outcome)
        self.history.transactions.append(transaction)
        return transaction

    def poll(self, *records, key=T, position=None, next_position=None, assignment=1, committed_only=True):
        self.now += 1
        start = records[0][0] if position is None else position
        end = records[-1][0] + 1 if next_position is None else next_position
        self.history.polls.append(Poll("c", key, start, records, end, self.now, assignment, committed_only))

    def commit(self, offset, outcome=Outcome.OK):
        self.now += 1
        self.history.commits.append(Commit("g", T, offset, "c", self.now, self.now + 0.5, outcome))

    def is_told(self, offset):
        self.now += 1
        self.history.commits_seen.append(CommitSeen("g", T, offset, "c", self.now, self.now + 0.5))

    def kinds(self):
        self.history.final = {key: tuple(sorted(records)) for key, records in self.log.items()}
        return sorted({anomaly.kind for anomaly in check(self.history)})


@pytest.fixture
def story():
    return Story()


def test_a_good_history(story):
    story.send("a", 0)
    story.send("b", 1)
    story.send("x", -1, outcome=Outcome.UNKNOWN, there=False)
    story.send("y", -1, outcome=Outcome.FAILED, there=False)
    story.poll((0, "a"), (1, "b"))
    story.commit(1)
    story.is_told(1)
    story.commit(2)
    story.is_told(2)
    assert story.kinds() == []


def test_a_lost_write(story):
    story.send("a", 0, there=False)
    assert story.kinds() == ["lost write"]


def test_a_write_that_only_the_leader_acknowledged_may_be_lost(story):
    story.send("a", 0, there=False, acks=1)
    story.send("b", 0)
    assert story.kinds() == []


def test_a_partition_that_cannot_be_read_at_the_end(story):
    story.send("a", 0)
    del story.log[T]
    assert story.kinds() == ["lost write"]


def test_nothing_is_promised_of_a_deleted_topic(story):
    story.send("a", 0, there=False)
    story.history.deleted["t#1"] = None
    assert story.kinds() == []


def test_a_refused_write_that_is_there(story):
    story.send("a", 0, outcome=Outcome.FAILED)
    assert story.kinds() == ["refused write"]


def test_a_duplicate(story):
    story.send("a", 0, idempotent=True)
    story.log[T].append((1, "a"))
    assert story.kinds() == ["duplicate"]


def test_a_plain_producer_that_retries_may_write_twice(story):
    story.send("a", 0)
    story.log[T].append((1, "a"))
    assert story.kinds() == []


def test_two_values_at_one_offset(story):
    story.send("a", 0)
    story.send("b", 1)
    story.poll((0, "b"), position=0, next_position=0)
    assert story.kinds() == ["inconsistent offsets"]


def test_an_acknowledged_offset_that_another_value_has(story):
    story.send("a", 0, there=False)
    story.send("b", 0)
    assert story.kinds() == ["inconsistent offsets", "lost write", "non-monotonic send"]


def test_a_value_from_nowhere(story):
    story.log[T].append((0, "?"))
    assert story.kinds() == ["inconsistent offsets"]


def test_a_non_monotonic_poll(story):
    story.send("a", 0)
    story.send("b", 1)
    story.poll((0, "a"), (1, "b"))
    story.poll((0, "a"))
    assert story.kinds() == ["non-monotonic poll"]


def test_a_new_assignment_may_begin_anywhere(story):
    story.send("a", 0)
    story.poll((0, "a"))
    story.poll((0, "a"), assignment=2)
    assert story.kinds() == []


def test_a_value_that_a_reader_skipped(story):
    story.send("a", 0)
    story.send("b", 1)
    story.poll((1, "b"), position=0)
    assert story.kinds() == ["skipped"]


def test_a_non_monotonic_send(story):
    story.send("a", 1)
    story.send("b", 0)
    assert story.kinds() == ["non-monotonic send"]


def test_an_aborted_read(story):
    aborted = story.transaction("aborted")
    story.send("a", 0, there=False, transaction=aborted)
    story.poll((0, "a"))
    assert story.kinds() == ["aborted read"]


def test_an_aborted_value_at_the_end(story):
    story.send("a", 0, transaction=story.transaction("aborted"))
    assert story.kinds() == ["aborted read"]


def test_who_reads_everything_may_see_what_is_aborted_later(story):
    story.send("a", 0, there=False, transaction=story.transaction("aborted"))
    story.poll((0, "a"), committed_only=False)
    assert story.kinds() == []


@pytest.mark.parametrize("outcome", ["committed", "unknown"])
def test_a_torn_transaction(story, outcome):
    transaction = story.transaction(outcome)
    story.send("a", 0, transaction=transaction)
    story.send("b", 0, key=U, transaction=transaction, there=False)
    assert "torn transaction" in story.kinds()


@pytest.mark.parametrize("there", [True, False])
def test_a_transaction_whose_end_is_unknown_is_whole(story, there):
    transaction = story.transaction("unknown")
    story.send("a", 0, transaction=transaction, there=there)
    story.send("b", 0, key=U, transaction=transaction, there=there)
    assert story.kinds() == []


def test_a_committed_offset_that_went_back(story):
    story.commit(5)
    story.is_told(3)
    assert story.kinds() == ["commit went back"]


def test_a_committed_offset_that_was_forgotten(story):
    story.commit(5)
    story.is_told(-1)
    assert story.kinds() == ["commit went back"]


def test_a_commit_that_was_not_answered_may_arrive_late(story):
    story.commit(3, Outcome.UNKNOWN)
    story.commit(5)
    story.is_told(3)
    assert story.kinds() == []


def test_offsets_of_a_transaction_count_when_it_is_committed(story):
    story.commit(5, Outcome.UNKNOWN)
    story.history.commits[0].transaction = story.transaction("aborted")
    story.is_told(-1)
    assert story.kinds() == []
    story.history.commits[0].transaction.outcome = "committed"
    assert story.kinds() == ["commit went back"]


def test_a_reader_whose_records_were_cut(story):
    story.history.truncations.append(Truncated("c", T, 5, 3, 1.0))
    assert story.kinds() == ["cut"]


def test_a_record_from_beyond_the_high_watermark(story):
    story.send("a", 0)
    story.poll((0, "a"))
    story.history.polls[-1].high_watermark = 1
    assert story.kinds() == []
    story.history.polls[-1].high_watermark = 0
    assert story.kinds() == ["uncommitted read"]


@pytest.mark.parametrize(("replica", "kinds"), [(2, []), (3, []), (4, ["sent astray"])])
def test_a_reader_that_is_sent_to_a_replica(story, replica, kinds):
    """What the leader believed may have changed between question and answer."""
    story.history.isrs[1, T] = [(0.0, (1, 4)), (1.0, (1, 2)), (5.5, (1, 3)), (7.0, (1, 4))]
    story.history.sent_elsewhere.append(SentElsewhere("c", T, 1, replica, 5.0, 6.0))
    assert story.kinds() == kinds


@pytest.mark.parametrize(
    ("ended", "fenced", "kinds"),
    [(5.0, False, []), (7.0, False, ["two owners"]), (7.0, True, []), (float("inf"), False, ["two owners"])],
    ids=["let go", "had it still", "was fenced", "never let go"],
)
def test_two_owners(story, ended, fenced, kinds):
    story.history.ownerships = [
        Ownership("a", "g", T, 6.0),
        Ownership("b", "g", T, 1.0, ended, fenced),
        Ownership("b", "another group", T, 2.0),
        Ownership("b", "g", U, 2.0),
    ]
    assert story.kinds() == kinds

"""Waits for a commit, and the order in which they are notified."""

from barnabas.broker.replica.commit_waits import CommitWaits
from barnabas.storage.errors import LogFailure


def waiting(*offsets):
    waits, told = CommitWaits(), []
    for offset in offsets:
        waits.add(offset, lambda failure, offset=offset: told.append((offset, failure)))
    return waits, told


def test_waits_whose_offset_was_passed_are_notified():
    waits, told = waiting(1, 2, 2, 3)
    waits.tell(0)
    assert told == []
    waits.tell(2)
    assert told == [(1, None), (2, None), (2, None)]
    waits.tell(9)
    assert told[3:] == [(3, None)]


def test_a_lower_offset_that_comes_later_is_not_behind_the_others():
    waits, told = waiting(5, 9, 1, 7)
    waits.tell(7)
    assert [offset for offset, _ in told] == [1, 5, 7]


def test_a_failure_is_reported_to_all():
    waits, told = waiting(1, 2)
    failure = LogFailure("gone")
    waits.give_up(failure)
    assert told == [(1, failure), (2, failure)]
    waits.tell(9)
    assert len(told) == 2


def test_a_callback_may_wait_again():
    waits, told = CommitWaits(), []

    def again(failure):
        told.append(failure)
        if len(told) < 3:
            waits.add(len(told) + 1, again)

    waits.add(1, again)
    waits.tell(1)
    assert (len(told), len(waits.waits)) == (1, 1)
    waits.tell(3)
    waits.tell(3)
    assert len(told) == 3


def test_cancelled_waits_do_not_pile_up():
    waits, _ = waiting()
    for number in range(10_000):
        waits.add(number, print).cancel()
    assert len(waits.waits) < 200

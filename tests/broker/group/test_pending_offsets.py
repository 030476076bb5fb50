"""barnabas.broker.group.pending_offsets, by way of the offsets that they are to become."""

import pytest

from barnabas.broker.group.offsets import Offsets
from barnabas.broker.group.records import CommittedOffset, offset_record

GROUP = "g"
PLACE = ("t", 0)
OTHER = ("t", 1)
OLD, NEW = b"old".ljust(16), b"new".ljust(16)


@pytest.fixture
def offsets():
    return Offsets()


def at(offset):
    return CommittedOffset(offset, -1, "", 0)


def commit(offsets, offset, place=PLACE, *, producer=None, group=GROUP):
    offsets.replay(group, place, at(offset), producer)


def committed(offsets, group=GROUP):
    return {place: found.offset for place, found in offsets.of_group(group).items()}


def pending(offsets, group=GROUP):
    return set(offsets.pending.of_group(group))


def test_offsets_hold_when_the_transaction_is_committed(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, OTHER, producer=7)
    assert (committed(offsets), pending(offsets)) == ({}, {PLACE, OTHER})
    offsets.end_transaction(7, committed=True)
    assert (committed(offsets), pending(offsets)) == ({PLACE: 5, OTHER: 6}, set())


def test_and_never_when_it_is_aborted(offsets):
    commit(offsets, 1)
    commit(offsets, 5, producer=7)
    offsets.end_transaction(7, committed=False)
    assert (committed(offsets), pending(offsets)) == ({PLACE: 1}, set())


def test_the_last_of_a_transaction_counts(offsets):
    for offset in (5, 6, 4):
        commit(offsets, offset, producer=7)
    offsets.end_transaction(7, committed=True)
    assert committed(offsets) == {PLACE: 4}


def test_what_was_committed_before_is_overwritten(offsets):
    commit(offsets, 9)
    commit(offsets, 5, producer=7)
    offsets.end_transaction(7, committed=True)
    assert committed(offsets) == {PLACE: 5}


def test_what_was_committed_after_is_not(offsets):
    """Places in the log count, not the order in which transactions end."""
    commit(offsets, 5, producer=7)
    commit(offsets, 5, OTHER, producer=7)
    commit(offsets, 9)
    assert pending(offsets) == {PLACE, OTHER}  # it still may not be read as stable
    offsets.end_transaction(7, committed=True)
    assert committed(offsets) == {PLACE: 9, OTHER: 5}


def test_nor_what_another_transaction_committed_after(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, producer=8)
    offsets.end_transaction(8, committed=True)
    assert (committed(offsets), pending(offsets)) == ({PLACE: 6}, {PLACE})
    offsets.end_transaction(7, committed=True)
    assert (committed(offsets), pending(offsets)) == ({PLACE: 6}, set())


def test_a_transaction_that_ends_late_but_wrote_last_overwrites(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, producer=8)
    offsets.end_transaction(7, committed=True)
    offsets.end_transaction(8, committed=True)
    assert committed(offsets) == {PLACE: 6}


def test_what_follows_an_aborted_one_does_not_hide_it(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, producer=8)
    offsets.end_transaction(8, committed=False)
    offsets.end_transaction(7, committed=True)
    assert committed(offsets) == {PLACE: 5}


def test_deleting_an_offset_takes_what_is_pending_with_it(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, OTHER, producer=7)
    commit(offsets, 6, producer=8)
    offsets.replay(GROUP, PLACE, None)
    assert pending(offsets) == {OTHER}
    offsets.end_transaction(7, committed=True)
    offsets.end_transaction(8, committed=True)
    assert (committed(offsets), pending(offsets)) == ({OTHER: 6}, set())


def test_groups_are_kept_apart(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, producer=7, group="h")
    offsets.replay(GROUP, PLACE, None)
    assert (pending(offsets), pending(offsets, "h")) == (set(), {PLACE})
    offsets.end_transaction(7, committed=True)
    assert (committed(offsets), committed(offsets, "h")) == ({}, {PLACE: 6})


def test_the_end_of_a_transaction_that_committed_no_offsets(offsets):
    offsets.end_transaction(7, committed=True)
    assert committed(offsets) == {}


def test_tombstones_for_what_is_committed_or_pending_and_nothing_else(offsets):
    commit(offsets, 5, producer=7)
    commit(offsets, 6, OTHER)
    assert len(offsets.tombstones(GROUP, [PLACE, OTHER, ("t", 2)])) == 2
    commit(offsets, 5, ("u", 0), producer=7)
    assert len(offsets.of_topics({"t": OLD})) == 2
    assert len(offsets.of_topics({"t": OLD, "u": OLD})) == 3


def test_what_was_committed_for_a_new_topic_does_not_go_with_the_old_one_of_the_same_name(offsets):
    for topic_id, place in ((OLD, PLACE), (NEW, OTHER)):
        offsets.replay(GROUP, place, at(5)._replace(topic_id=topic_id))
        offsets.replay("h", place, at(6)._replace(topic_id=topic_id), 7)
    assert [record.key for record in offsets.of_topics({"t": OLD})] == [
        offset_record(group, *PLACE, None).key for group in (GROUP, "h")
    ]

"""Committed offsets: who may commit, what is kept, and when it expires."""

import pytest

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.classic.objections import objection_to_commit
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.group.harness import GROUP, Coordinator, topic_id

DAY_MS = 86_400_000


@pytest.fixture
def coordinator():
    return Coordinator()


def commit(coordinator, offsets, *, member_id="", instance=None, generation=-1, group_id=GROUP, expires=-1):
    """Commit {(topic, partition): offset}; returns the error."""
    told = []
    now_ms = coordinator.timers.now_ms
    committed = [(TopicPartition(*p), CommittedOffset(offset, 0, "", now_ms, expires)) for p, offset in offsets.items()]
    by = Committer(member_id, instance, generation)
    coordinator.carry_out(coordinator.shard.commit(group_id, by, committed, told.append))
    (error,) = told
    return error


def offsets(coordinator, group_id=GROUP):
    return {p: committed.offset for p, committed in coordinator.shard.offsets.of_group(group_id).items()}


def test_a_member_commits_and_the_last_commit_counts(coordinator):
    (member,) = coordinator.stable_with(1)
    assert commit(coordinator, {("t", 0): 5, ("t", 1): 7}, member_id=member, generation=1) == ErrorCode.NONE
    assert commit(coordinator, {("t", 0): 6}, member_id=member, generation=1) == ErrorCode.NONE
    assert offsets(coordinator) == {("t", 0): 6, ("t", 1): 7}


def test_offsets_are_there_again_after_a_restart(coordinator):
    (member,) = coordinator.stable_with(1)
    commit(coordinator, {("t", 0): 5}, member_id=member, generation=1)
    assert offsets(coordinator.reloaded()) == {("t", 0): 5}


def test_a_consumer_without_a_group_may_commit_as_long_as_there_are_no_members(coordinator):
    assert commit(coordinator, {("t", 0): 5}) == ErrorCode.NONE
    assert offsets(coordinator) == {("t", 0): 5}
    coordinator.stable_with(1)
    assert commit(coordinator, {("t", 0): 6}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert offsets(coordinator) == {("t", 0): 5}


def test_a_commit_shows_that_its_member_is_alive(coordinator):
    (member,) = coordinator.stable_with(1)
    for _ in range(5):
        coordinator.timers.advance(9000)
        assert commit(coordinator, {("t", 0): 5}, member_id=member, generation=1) == ErrorCode.NONE


def test_a_failed_append_changes_nothing(coordinator):
    coordinator.append_error = ErrorCode.NOT_COORDINATOR
    assert commit(coordinator, {("t", 0): 5}) == ErrorCode.NOT_COORDINATOR
    assert offsets(coordinator) == {}


def test_commits_that_do_not_fit_the_group(coordinator):
    assert commit(coordinator, {}, generation=3) == ErrorCode.GROUP_ID_NOT_FOUND  # of a group that does not exist
    (member,) = coordinator.stable_with(1, instance="i")
    assert commit(coordinator, {}, member_id=member, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert commit(coordinator, {}, member_id="nobody", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(coordinator, {}, member_id="old", instance="i", generation=1) == ErrorCode.FENCED_INSTANCE_ID


def test_a_commit_during_a_rebalance(coordinator):
    leader, follower = coordinator.stable_with(2)
    generation = coordinator.group.generation
    coordinator.join(leader)
    # While members join again, the last generation may still commit what it has done.
    assert commit(coordinator, {("t", 0): 5}, member_id=follower, generation=generation) == ErrorCode.NONE
    coordinator.join(follower)
    error = commit(coordinator, {("t", 0): 6}, member_id=follower, generation=generation + 1)
    assert error == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_dead_group_sends_its_clients_to_look_for_the_coordinator(coordinator):
    (member,) = coordinator.stable_with(1)
    group = coordinator.group
    coordinator.leave(member)
    coordinator.shard.membership.forget(group)
    assert objection_to_commit(group, "", None, -1) == ErrorCode.COORDINATOR_NOT_AVAILABLE


# --- expiry ---


def expire(coordinator, kept_ms=7 * DAY_MS):
    for group_id in list(coordinator.shard.groups):
        coordinator.carry_out(CoordinatorResult(coordinator.shard.expire(group_id, kept_ms)))


def test_offsets_of_a_group_with_members_stay(coordinator):
    (member,) = coordinator.stable_with(1, session_timeout_ms=1_800_000, protocols=(("range", subscription("t")),))
    commit(coordinator, {("t", 0): 5}, member_id=member, generation=1)
    for _ in range(400):
        coordinator.timers.advance(1_700_000)
        coordinator.heartbeat(member, 1)
    expire(coordinator)
    assert offsets(coordinator) == {("t", 0): 5}


def test_offsets_of_topics_that_the_group_no_longer_reads_expire(coordinator):
    (member,) = coordinator.stable_with(1, protocols=(("range", subscription("t")),))
    commit(coordinator, {("t", 0): 5, ("old", 0): 9}, member_id=member, generation=1)
    expire(coordinator, kept_ms=0)
    assert offsets(coordinator) == {("t", 0): 5}


def test_offsets_of_consumers_that_do_not_say_what_they_read_stay(coordinator):
    (member,) = coordinator.stable_with(1, protocols=(("range", b"in no known format"),))
    commit(coordinator, {("t", 0): 5}, member_id=member, generation=1)
    expire(coordinator, kept_ms=0)
    assert offsets(coordinator) == {("t", 0): 5}


def test_offsets_expire_some_time_after_the_group_became_empty_and_the_group_with_them(coordinator):
    (member,) = coordinator.stable_with(1)
    commit(coordinator, {("t", 0): 5}, member_id=member, generation=1)
    coordinator.timers.advance(5000)
    coordinator.leave(member)
    coordinator.timers.advance(7 * DAY_MS - 1)
    expire(coordinator)
    assert offsets(coordinator) == {("t", 0): 5}
    coordinator.timers.advance(1)
    expire(coordinator)
    assert offsets(coordinator) == {}
    assert GROUP not in coordinator.shard.groups
    assert coordinator.records[-1].value is None
    assert coordinator.reloaded().shard.groups == {}


def test_offsets_without_a_group_expire_some_time_after_their_commit(coordinator):
    commit(coordinator, {("t", 0): 5})
    coordinator.timers.advance(3 * DAY_MS)
    commit(coordinator, {("t", 1): 6})
    coordinator.timers.advance(4 * DAY_MS)
    expire(coordinator)
    assert offsets(coordinator) == {("t", 1): 6}
    coordinator.timers.advance(3 * DAY_MS)
    expire(coordinator)
    assert GROUP not in coordinator.shard.groups


def test_an_older_client_may_say_itself_how_long_its_offsets_are_kept(coordinator):
    commit(coordinator, {("t", 0): 5}, expires=coordinator.timers.now_ms + 1000)
    coordinator.timers.advance(1000)
    expire(coordinator)
    assert offsets(coordinator) == {}


def test_offsets_of_a_deleted_topic_go_with_it(coordinator):
    commit(coordinator, {("t", 0): 5, ("u", 0): 6})
    commit(coordinator, {("t", 0): 7}, group_id="other")
    coordinator.carry_out(CoordinatorResult(coordinator.shard.forget_topics({"t": topic_id("t")})))
    assert offsets(coordinator) == {("u", 0): 6}
    assert offsets(coordinator, "other") == {}
    assert offsets(coordinator.reloaded(), "other") == {}


def subscription(*topics):
    """As a consumer sends it: version, topics, user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return (0).to_bytes(2, "big") + len(topics).to_bytes(4, "big") + names + (0).to_bytes(4, "big")

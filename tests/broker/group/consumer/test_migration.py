"""Groups that change their protocol while they have members."""

import pytest

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.client.requests.groups import assignment
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_with_version,
    with_version,
)
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.consumer.harness import error, group_of
from tests.broker.group.harness import topic_id


def owning(*indexes):
    """How a member of the classic protocol joins that owns partitions of the topic "t"."""
    owned = [TopicPartition(topic="t", partitions=list(indexes))] if indexes else []
    return [("range", with_version(ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned), 1))]


def with_policy(policy, **settings):
    return group_of(("t", 2), group_consumer_migration_policy=policy, **settings)


@pytest.fixture
def group():
    return with_policy("bidirectional")


def classic_member(group, **fields):
    """The only member of a stable classic group, which owns everything; its id."""
    joined = group.coordinator.join(protocols=owning(), **fields).message
    member_id = joined.member_id
    group.coordinator.sync(member_id, joined.generation_id, {member_id: assignment(("t", [0, 1]))})
    return member_id


def partitions(answer):
    found = read_with_version(ConsumerProtocolAssignment, answer.message.assignment).assigned_partitions
    return [index for topic in found for index in topic.partitions]


def shared(group):
    """A group of a classic member and one of the consumer protocol, which have a partition each; the first one's id."""
    member_id = classic_member(group)
    group.join("b", "t")
    group.coordinator.join(member_id, protocols=owning(0, 1))
    group.coordinator.sync(member_id, 1)
    group.coordinator.join(member_id, protocols=owning(0))
    group.coordinator.sync(member_id, 2)
    group.beat("b", owned={})
    assert (group.state, group.owned["b"]) == ("Stable", {"t": [1]})
    return member_id


def test_the_first_member_of_the_consumer_protocol_upgrades_the_group(group):
    member_id = classic_member(group)
    joined = group.join("b", "t")
    assert (joined.member_epoch, group.owned["b"]) == (2, {})
    assert isinstance(group.group, ConsumerGroup)
    coordinator = group.coordinator
    assert coordinator.heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS

    asked = coordinator.join(member_id, protocols=owning(0, 1)).message
    assert asked.generation_id == 1
    assert partitions(coordinator.sync(member_id, 1)) == [0]
    assert coordinator.heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS  # it has let go by then
    assert coordinator.join(member_id, protocols=owning(0)).message.generation_id == 2
    assert partitions(coordinator.sync(member_id, 2)) == [0]
    assert coordinator.heartbeat(member_id, 2) == ErrorCode.NONE
    group.beat("b", owned={})
    assert group.owned["b"] == {"t": [1]}


def test_the_last_member_of_the_consumer_protocol_downgrades_it(group):
    member_id = shared(group)
    group.leave("b")
    coordinator = group.coordinator
    assert isinstance(coordinator.group, Group)
    assert coordinator.heartbeat(member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.join(member_id, protocols=owning(0)).message.generation_id == 3
    assert isinstance(coordinator.reloaded().group, Group)


def test_partitions_that_do_not_exist_are_not_taken_along(group):
    """The classic group's leader may have assigned them when there was a larger topic of that name."""
    joined = group.coordinator.join(protocols=owning()).message
    assigned = {joined.member_id: assignment(("t", [-1, 0, 1, 2]))}
    group.coordinator.sync(joined.member_id, joined.generation_id, assigned)
    assert error(group.join("b", "t", "u")) == ErrorCode.NONE
    assert group.group.members[joined.member_id].assigned == {topic_id("t"): {0: 1, 1: 1}}


def test_whoever_waits_in_the_classic_group_joins_again(group):
    classic_member(group)
    waiting = group.coordinator.join(protocols=owning())
    assert waiting.message is None
    group.join("b", "t")
    assert waiting.error == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_an_upgrade_may_be_forbidden(policy):
    group = with_policy(policy)
    classic_member(group)
    assert error(group.join("b", "t")) == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(group.coordinator.group, Group)


def test_a_downgrade_may_be_forbidden():
    group = with_policy("upgrade")
    member_id = shared(group)
    group.leave("b")
    assert isinstance(group.group, ConsumerGroup)
    assert group.coordinator.heartbeat(member_id, 2) == ErrorCode.NONE  # nothing is assigned until somebody joins
    assert group.state == "Assigning"


def test_groups_that_are_too_large_stay_what_they_are():
    group = with_policy("bidirectional", group_consumer_max_size=1)
    classic_member(group)
    assert error(group.join("b", "t")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert isinstance(group.coordinator.group, Group)


def test_a_subscription_that_is_none_cannot_be_upgraded(group):
    group.coordinator.stable_with(1)
    assert error(group.join("b", "t")) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_classic_member_falls_silent(group):
    member_id = shared(group)
    group.advance(9_000)
    group.beat("b")
    group.advance(1_000)
    assert list(group.group.members) == ["b"]
    assert group.coordinator.heartbeat(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_has_joined_without_hearing_of_it_falls_silent(group):
    """Its record was written, but replicas were slow: the member is told to try again, and does not."""
    shared(group)
    before = set(group.group.members)
    group.coordinator.commit_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.coordinator.join(protocols=owning()).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.coordinator.commit_error = ErrorCode.NONE
    (joined,) = set(group.group.members) - before
    group.advance(10_000)
    assert joined not in group.group.members


def test_a_classic_member_that_does_not_join_again_is_removed(group):
    member_id = classic_member(group, rebalance_timeout_ms=20_000)
    group.join("b", "t")
    for _ in range(3):
        assert group.coordinator.heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        group.beat("b")
        group.advance(8_000)
    assert group.coordinator.heartbeat(member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_sync_is_removed(group):
    group.join("b", "t")
    joined = group.coordinator.join(protocols=owning(), rebalance_timeout_ms=20_000).message
    for _ in range(3):
        group.coordinator.heartbeat(joined.member_id, joined.generation_id)
        group.beat("b")
        group.advance(8_000)
    assert list(group.group.members) == ["b"]


def test_a_static_member_moves_by_itself(group):
    classic_member(group, instance="i")
    joined = group.join("b", "t", instance_id="i")
    assert (joined.member_epoch, group.owned["b"]) == (1, {"t": [0, 1]})
    back = group.coordinator.join(instance="i", protocols=owning()).message
    assert isinstance(group.coordinator.group, Group)
    assert group.coordinator.heartbeat(back.member_id, back.generation_id, "i") == ErrorCode.NONE
    assert partitions(group.coordinator.sync(back.member_id, back.generation_id, instance="i")) == [0, 1]


def test_a_group_in_between_is_there_after_a_restart(group):
    member_id = shared(group)
    other = group.reloaded()
    assert other.group.members == group.group.members
    other.coordinator.settings.group_consumer_migration_policy = "bidirectional"
    assert other.coordinator.heartbeat(member_id, 2) == ErrorCode.NONE
    other.leave("b")
    assert isinstance(other.coordinator.group, Group)


def test_an_upgrade_that_was_not_written_leaves_the_classic_group_as_it_was(group):
    classic_member(group)
    group.coordinator.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.join("b", "t")
    group.coordinator.append_error = ErrorCode.NONE
    assert isinstance(group.group, Group)
    group.advance(10_000)  # the session of its member, who is silent
    assert group.state == "Empty"


def test_a_downgrade_that_was_not_written_leaves_the_consumer_group_as_it_was(group):
    member_id = shared(group)
    group.coordinator.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.leave("b")
    group.coordinator.append_error = ErrorCode.NONE
    assert isinstance(group.group, ConsumerGroup)
    assert group.coordinator.heartbeat(member_id, 2) == ErrorCode.NONE
    group.advance(10_000)
    assert set(group.group.members) == {"b"}  # the other one was silent for longer than its session
    group.advance(35_000)
    assert not group.group.members


def test_members_of_an_upgraded_group_have_their_own_sessions(group):
    member_id = classic_member(group)
    group.join("b", "t")
    group.advance(9_999)
    assert set(group.group.members) == {member_id, "b"}
    group.advance(1)
    assert set(group.group.members) == {"b"}


def test_members_of_a_downgraded_group_have_their_own_sessions(group):
    member_id = shared(group)
    group.leave("b")
    group.coordinator.join(member_id, protocols=owning(0))
    group.coordinator.sync(member_id, 3)
    group.advance(9_999)
    assert set(group.group.members) == {member_id}
    group.advance(1)
    assert group.state == "Empty"

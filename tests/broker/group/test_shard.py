"""Groups as administrators see them: listed, described, deleted."""

import pytest

from barnabas.broker.group.classic.describe import described as describe
from barnabas.broker.group.kind import listing
from barnabas.broker.group.records import record_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.broker.group.harness import GROUP, Coordinator
from tests.broker.group.test_offsets import commit, offsets, subscription


@pytest.fixture
def coordinator():
    return Coordinator()


def listed(coordinator):
    groups = map(listing, coordinator.shard.groups.values())
    return [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in groups]


def delete(coordinator, group_id=GROUP):
    told = []
    coordinator.carry_out(coordinator.shard.delete_group(group_id, told.append))
    return told[0]


def test_groups_are_listed_and_so_are_those_that_have_only_offsets(coordinator):
    coordinator.stable_with(1)
    commit(coordinator, {("t", 0): 1}, group_id="simple")
    assert listed(coordinator) == [(GROUP, "consumer", "Stable", "classic"), ("simple", "", "Empty", "classic")]


def test_a_stable_group_is_described_with_subscriptions_and_assignments(coordinator):
    leader, follower = coordinator.stable_with(2)
    described = describe(coordinator.group)
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert {m.member_id: m.member_assignment for m in described.members} == {
        leader: leader.encode(),
        follower: follower.encode(),
    }
    assert {m.client_host for m in described.members} == {"/127.0.0.1"}
    assert {m.member_metadata for m in described.members} == {b"t"}


def test_while_a_group_rebalances_its_protocol_and_subscriptions_are_left_out(coordinator):
    coordinator.stable_with(1)
    coordinator.join()
    described = describe(coordinator.group)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    # The first member still has what it was assigned before.
    assert {(m.member_metadata, m.member_assignment) for m in described.members} == {(b"", b"a0"), (b"", b"")}


def test_an_empty_group_can_be_deleted_with_its_offsets(coordinator):
    (member,) = coordinator.stable_with(1)
    commit(coordinator, {("t", 0): 1}, member_id=member, generation=1)
    assert delete(coordinator) == ErrorCode.NON_EMPTY_GROUP
    coordinator.leave(member)
    assert delete(coordinator) == ErrorCode.NONE
    assert listed(coordinator) == []
    assert offsets(coordinator) == {}
    assert listed(coordinator.reloaded()) == []
    assert delete(coordinator) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_that_has_only_offsets_can_be_deleted(coordinator):
    commit(coordinator, {("t", 0): 1})
    assert delete(coordinator) == ErrorCode.NONE
    assert listed(coordinator) == []


def test_offsets_are_deleted_of_topics_that_the_group_does_not_read(coordinator):
    (member,) = coordinator.stable_with(1, protocols=(("range", subscription("read")),))
    commit(coordinator, {("read", 0): 1, ("left", 0): 2}, member_id=member, generation=1)
    error, errors, decision = coordinator.shard.delete_offsets(GROUP, [("read", 0), ("left", 0)])
    coordinator.carry_out(decision)
    assert error == ErrorCode.NONE
    assert errors == {("read", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("left", 0): ErrorCode.NONE}
    assert offsets(coordinator) == {("read", 0): 1}


def test_offsets_of_consumers_that_do_not_say_what_they_read_are_not_deleted(coordinator):
    coordinator.stable_with(1, protocols=(("range", b"in no known format"),))
    _, errors, _ = coordinator.shard.delete_offsets(GROUP, [("t", 0)])
    assert errors == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_a_group_outlives_its_last_offset(coordinator):
    commit(coordinator, {("t", 0): 1})
    coordinator.carry_out(coordinator.shard.delete_offsets(GROUP, [("t", 0)])[2])
    assert offsets(coordinator) == {}
    assert listed(coordinator) == [(GROUP, "", "Empty", "classic")]


def test_offsets_of_a_group_of_another_kind_are_deleted_only_when_it_is_empty(coordinator):
    coordinator.stable_with(1, protocol_type="connect")
    assert coordinator.shard.delete_offsets(GROUP, [("t", 0)])[0] == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_an_unknown_group_cannot_be_deleted(coordinator):
    assert coordinator.shard.delete_offsets(GROUP, [("t", 0)])[0] == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_whose_record_names_a_leader_that_is_not_a_member_or_a_member_twice(coordinator):
    member = MemberMetadata(
        member_id="m", client_id="", client_host="", session_timeout=10_000, subscription=b"t", assignment=b""
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="nobody", members=[member, member]
    )
    coordinator = Coordinator([record_of(GroupMetadataKey(group=GROUP), value, 3)])
    assert coordinator.state == "Stable"
    assert coordinator.join("m", protocols=(("range", b"other"),)).message.leader == "m"

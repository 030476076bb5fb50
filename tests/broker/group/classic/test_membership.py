"""The rebalance protocol, story by story."""

import pytest

from barnabas.broker.group.classic.membership import NEW_MEMBER_JOIN_TIMEOUT_MS
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import GROUP, Coordinator


@pytest.fixture
def coordinator():
    return Coordinator()


# --- joining ---


def test_a_new_member_first_gets_its_id_then_joins_and_leads(coordinator):
    joined = coordinator.join().message
    assert joined.error_code == 0
    assert joined.member_id == joined.leader == "c-id1"
    assert joined.generation_id == 1
    assert joined.protocol_name == "range"
    assert [(m.member_id, m.metadata) for m in joined.members] == [("c-id1", b"t")]
    assert coordinator.state == "CompletingRebalance"


def test_before_version_4_a_member_joins_without_an_id(coordinator):
    assert coordinator.join(version=3).message.member_id == "c-id1"


def test_a_pending_member_that_does_not_come_back_is_forgotten(coordinator):
    members = coordinator.stable_with(1)
    first = coordinator.join()
    assert first.message is None  # waits for the other one to join again
    pending = coordinator.join("")  # another, which gets an id and does join
    coordinator.group.pending_members.add("never-comes")
    coordinator.timers.schedule(
        (GROUP, "never-comes"),
        10_000,
        lambda: coordinator.shard.membership._pending_expired(coordinator.group, "never-comes"),
    )
    again = coordinator.join(members[0])
    assert again.message is None  # the one with the id only is still waited for
    coordinator.timers.advance(10_000)
    assert all(answer.message is not None for answer in (first, pending, again))


def test_the_second_member_makes_the_first_join_again(coordinator):
    members = coordinator.stable_with(1)
    second = coordinator.join()
    assert coordinator.state == "PreparingRebalance"
    assert coordinator.heartbeat(members[0], 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert second.message is None
    first = coordinator.join(members[0])
    assert first.message.generation_id == second.message.generation_id == 2
    assert len(first.message.members) == 2
    assert second.message.members == []
    assert second.message.leader == members[0]


def test_members_that_do_not_join_again_in_time_are_dropped(coordinator):
    coordinator.stable_with(1)
    second = coordinator.join(session_timeout_ms=100_000)
    coordinator.group.members["c-id1"].session_timeout_ms = 200_000
    coordinator.timers.advance(60_000)
    assert second.message.leader == second.message.member_id
    assert list(coordinator.group.members) == [second.message.member_id]


def test_the_initial_delay_waits_for_more_members_as_long_as_some_come():
    coordinator = Coordinator(group_initial_rebalance_delay_ms=3000)
    first = coordinator.join()
    coordinator.timers.advance(2000)
    assert first.message is None
    second = coordinator.join()
    coordinator.timers.advance(1000)  # the delay is over, but another member joined meanwhile
    assert second.message is None
    coordinator.timers.advance(3000)
    assert first.message.generation_id == second.message.generation_id == 1


def test_the_initial_delay_is_never_longer_than_the_rebalance_timeout():
    coordinator = Coordinator(group_initial_rebalance_delay_ms=3000)
    first = coordinator.join(rebalance_timeout_ms=5000)
    for _ in range(4):
        coordinator.timers.advance(1250)
        coordinator.join(rebalance_timeout_ms=5000)
    assert first.message is not None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("range", b"1"), ("range", b"2"))}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_joins_that_are_refused(coordinator, fields, error):
    assert coordinator.join(**fields).error == error


@pytest.mark.parametrize(
    "fields",
    [{"protocol_type": "connect"}, {"protocols": (("sticky", b""),)}],
    ids=["another type", "no common protocol"],
)
def test_whoever_cannot_be_assigned_with_the_others_is_refused(coordinator, fields):
    coordinator.stable_with(1)
    assert coordinator.join(**fields).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.state == "Stable"


def test_a_member_that_names_a_protocol_twice_leaves_a_healthy_group_alone(coordinator):
    (member,) = coordinator.stable_with(1)
    twice = (("range", b"1"), ("range", b"1"))
    assert coordinator.join(protocols=twice).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.join(member, protocols=twice).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.state == "Stable"


def test_the_protocol_is_voted_on_among_those_that_all_have(coordinator):
    coordinator.join(protocols=(("sticky", b""), ("range", b"")))
    first = next(iter(coordinator.group.members))
    coordinator.sync(first, 1, {})
    second = coordinator.join(protocols=(("range", b"2"), ("roundrobin", b"")))
    coordinator.join(first, protocols=(("sticky", b""), ("range", b"1")))
    assert second.message.protocol_name == "range"


def test_a_full_group_refuses_new_members_and_keeps_its_own():
    coordinator = Coordinator(group_max_size=2)
    members = coordinator.stable_with(2)
    assert coordinator.join().error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert coordinator.join(members[1]).error == ErrorCode.NONE


# --- joining again ---


def test_a_follower_that_joins_with_nothing_new_changes_nothing(coordinator):
    leader, follower = coordinator.stable_with(2)
    answer = coordinator.join(follower)
    assert answer.message.generation_id == coordinator.group.generation
    assert answer.message.leader == leader
    assert coordinator.state == "Stable"


def test_a_leader_that_joins_again_begins_a_rebalance(coordinator):
    leader, _ = coordinator.stable_with(2)
    assert coordinator.join(leader).message is None
    assert coordinator.state == "PreparingRebalance"


def test_a_new_subscription_begins_a_rebalance(coordinator):
    _, follower = coordinator.stable_with(2)
    coordinator.join(follower, protocols=(("range", b"another topic"),))
    assert coordinator.state == "PreparingRebalance"


def test_a_member_that_missed_the_answer_to_its_join_gets_it_again(coordinator):
    joined = coordinator.join().message
    again = coordinator.join(joined.member_id)
    assert again.message.generation_id == joined.generation_id
    assert len(again.message.members) == 1


def test_a_new_subscription_while_the_leader_assigns_begins_a_rebalance_and_ends_the_waiting_syncs(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.join(leader)
    generation = coordinator.join(follower).message.generation_id
    waiting = coordinator.sync(follower, generation)
    assert waiting.message is None
    coordinator.join(leader, protocols=(("range", b"another topic"),))
    assert waiting.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.state == "PreparingRebalance"
    assert {member.assignment for member in coordinator.group.members.values()} == {b""}


def test_when_the_leader_does_not_come_back_another_member_leads(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.leave(leader)
    answer = coordinator.join(follower)
    assert answer.message.leader == follower


# --- syncing ---


def test_members_wait_for_the_leaders_assignment(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.join(leader)
    generation = coordinator.join(follower).message.generation_id
    waiting = coordinator.sync(follower, generation)
    assert waiting.message is None
    given = coordinator.sync(leader, generation, {leader: b"p0", follower: b"p1"})
    assert (given.message.assignment, waiting.message.assignment) == (b"p0", b"p1")
    assert given.message.protocol_name == "range"
    assert coordinator.state == "Stable"


def test_a_member_that_the_leader_forgot_gets_an_empty_assignment(coordinator):
    joined = coordinator.join().message
    assert coordinator.sync(joined.member_id, 1, {}).message.assignment == b""


def test_a_stable_member_may_ask_for_its_assignment_again(coordinator):
    _, follower = coordinator.stable_with(2)
    assert coordinator.sync(follower, coordinator.group.generation).message.assignment == follower.encode()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_that_does_not_fit(coordinator, arguments, error):
    joined = coordinator.join().message
    arguments = {"member_id": joined.member_id, "generation": 1, **arguments}
    assert coordinator.sync(arguments.pop("member_id"), arguments.pop("generation"), {}, **arguments).error == error


def test_a_sync_to_an_unknown_group(coordinator):
    assert coordinator.sync("m", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_during_the_next_rebalance(coordinator):
    members = coordinator.stable_with(1)
    coordinator.join()
    assert coordinator.sync(members[0], 1).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_cannot_be_stored_is_not_handed_out(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.join(leader)
    generation = coordinator.join(follower).message.generation_id
    waiting = coordinator.sync(follower, generation)
    coordinator.append_error = ErrorCode.NOT_COORDINATOR
    given = coordinator.sync(leader, generation, {leader: b"p0", follower: b"p1"})
    assert given.error == waiting.error == ErrorCode.NOT_COORDINATOR
    assert coordinator.state == "PreparingRebalance"


def test_a_leader_that_dies_before_it_syncs_is_replaced(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.join(leader)
    generation = coordinator.join(follower).message.generation_id
    waiting = coordinator.sync(follower, generation)
    coordinator.timers.advance(10_000)  # the leader's session ends; the follower waits, and so is alive
    assert waiting.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.join(follower).message.leader == follower


def test_whoever_does_not_sync_in_time_is_dropped(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.join(leader)
    generation = coordinator.join(follower).message.generation_id
    for _ in range(7):
        coordinator.timers.advance(9000)
        coordinator.heartbeat(leader, generation)
        coordinator.heartbeat(follower, generation)
    assert coordinator.state == "Empty"


# --- staying ---


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "another"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats(coordinator, arguments, error):
    (member,) = coordinator.stable_with(1)
    assert coordinator.heartbeat(**{"member_id": member, "generation": 1, **arguments}) == error


def test_a_heartbeat_while_the_leader_assigns(coordinator):
    joined = coordinator.join().message
    assert coordinator.heartbeat(joined.member_id, 1) == ErrorCode.NONE


def test_a_member_that_is_heard_stays_and_one_that_is_not_goes(coordinator):
    leader, follower = coordinator.stable_with(2)
    generation = coordinator.group.generation
    for _ in range(5):
        coordinator.timers.advance(6000)
        coordinator.heartbeat(follower, generation)
    assert list(coordinator.group.members) == [follower]
    assert coordinator.heartbeat(leader, generation) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_neither_ends_nor_prolongs_a_session(coordinator, hours):
    first, _ = coordinator.stable_with(2)
    coordinator.timers.advance(9000)
    coordinator.heartbeat(first, coordinator.group.generation)
    coordinator.clock_ahead_ms = hours * 3_600_000
    coordinator.timers.advance(1000)
    assert set(coordinator.group.members) == {first}


def test_a_new_member_is_not_held_to_its_session_while_its_join_waits(coordinator):
    coordinator.stable_with(1)
    coordinator.group.members["c-id1"].rebalance_timeout_ms = 10 * 60_000
    coordinator.group.members["c-id1"].session_timeout_ms = 10 * 60_000
    second = coordinator.join()
    coordinator.timers.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert second.message is None
    coordinator.timers.advance(1)
    assert second.error == ErrorCode.UNKNOWN_MEMBER_ID


# --- leaving ---


def test_the_last_member_leaves_an_empty_group(coordinator):
    (member,) = coordinator.stable_with(1)
    assert coordinator.leave(member).members[0].error_code == 0
    assert coordinator.state == "Empty"
    assert coordinator.group.generation == 2


def test_a_member_that_leaves_begins_a_rebalance(coordinator):
    leader, follower = coordinator.stable_with(2)
    coordinator.leave(follower)
    assert coordinator.heartbeat(leader, coordinator.group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.join(leader).message is not None


def test_several_leave_at_once_each_with_an_answer_of_its_own(coordinator):
    leader, follower = coordinator.stable_with(2)
    answers = coordinator.leave(leader, "nobody", follower).members
    assert [a.error_code for a in answers] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert coordinator.state == "Empty"


def test_before_version_3_one_leaves_with_one_error(coordinator):
    (member,) = coordinator.stable_with(1)
    assert coordinator.leave("nobody", version=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.leave(member, version=2).error_code == 0


def test_leaving_an_unknown_group(coordinator):
    assert coordinator.leave("m").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.leave("m", version=0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_whoever_leaves_last_of_those_awaited_completes_the_rebalance(coordinator):
    leader, follower = coordinator.stable_with(2)
    waiting = coordinator.join(leader)
    assert waiting.message is None
    coordinator.leave(follower)
    assert waiting.message.generation_id == coordinator.group.generation


# --- static members ---


def test_a_static_member_comes_back_without_a_rebalance(coordinator):
    (old,) = coordinator.stable_with(1, instance="i")
    generation = coordinator.group.generation
    back = coordinator.join(instance="i").message
    assert back.error_code == 0
    assert back.member_id != old
    assert back.generation_id == generation
    assert back.skip_assignment
    assert coordinator.state == "Stable"
    assert coordinator.sync(back.member_id, generation, instance="i").message.assignment == b"a0"
    assert coordinator.heartbeat(old, generation, "i") == ErrorCode.FENCED_INSTANCE_ID


def test_before_version_9_a_static_leader_that_comes_back_is_told_that_its_former_self_leads(coordinator):
    (old,) = coordinator.stable_with(1, instance="i")
    back = coordinator.join(instance="i", version=8).message
    assert back.leader == old
    assert back.members == []


def test_a_static_member_that_comes_back_with_something_new_begins_a_rebalance(coordinator):
    coordinator.stable_with(1, instance="i", protocols=(("range", b""), ("sticky", b"")))
    back = coordinator.join(instance="i", protocols=(("sticky", b""),))
    assert back.message.generation_id == 2
    assert back.message.protocol_name == "sticky"


def test_the_former_self_of_a_static_member_is_fenced_while_it_waits(coordinator):
    coordinator.stable_with(1, instance="i")
    other = coordinator.join(instance="j")
    former = coordinator.join(coordinator.group.static_members["i"], instance="i")
    assert other.message is not None
    assert former.message is not None
    waiting = coordinator.sync(other.message.member_id, 2, instance="j")
    back = coordinator.join(instance="j")
    assert waiting.error == ErrorCode.FENCED_INSTANCE_ID
    assert back.message is None or back.error == ErrorCode.NONE


def test_a_static_member_may_be_removed_by_its_instance_id(coordinator):
    coordinator.stable_with(1, instance="i")
    assert coordinator.leave(("", "i")).members[0].error_code == 0
    assert coordinator.state == "Empty"
    assert coordinator.leave(("", "i")).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_leaves_under_an_old_id_is_fenced(coordinator):
    coordinator.stable_with(1, instance="i")
    assert coordinator.leave(("old", "i")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_is_waited_for_until_its_session_ends(coordinator):
    coordinator.stable_with(1, instance="i", session_timeout_ms=120_000)
    other = coordinator.join(session_timeout_ms=240_000, rebalance_timeout_ms=10_000)
    coordinator.timers.advance(60_000)
    assert other.message is not None  # the rebalance went on without it
    assert "i" in coordinator.group.static_members  # but it is still a member


# --- what outlives the broker ---


def test_a_stable_group_is_there_again_after_a_restart(coordinator):
    leader, follower = coordinator.stable_with(2)
    again = coordinator.reloaded()
    assert again.state == "Stable"
    assert again.heartbeat(follower, coordinator.group.generation) == ErrorCode.NONE
    assert again.sync(follower, again.group.generation).message.assignment == follower.encode()
    assert again.group.leader_id == leader


def test_members_that_do_not_return_after_a_restart_time_out(coordinator):
    coordinator.stable_with(2)
    again = coordinator.reloaded()
    again.timers.advance(10_000)
    again.timers.advance(60_000)
    assert again.state == "Empty"


def test_an_empty_group_keeps_its_generation_over_a_restart(coordinator):
    (member,) = coordinator.stable_with(1)
    coordinator.leave(member)
    again = coordinator.reloaded()
    assert (again.state, again.group.generation) == ("Empty", 2)
    assert again.join().message.generation_id == 3


def test_a_static_member_that_came_back_is_there_under_its_new_id_after_a_restart(coordinator):
    coordinator.stable_with(1, instance="i")
    back = coordinator.join(instance="i").message
    again = coordinator.reloaded()
    assert list(again.group.members) == [back.member_id]
    assert again.sync(back.member_id, back.generation_id, instance="i").message.assignment == b"a0"


def test_a_group_that_has_had_no_members_yet_survives_a_restart(coordinator):
    assert coordinator.join(protocols=()).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    again = coordinator.reloaded()
    assert (again.state, again.group.generation) == ("Empty", 0)
    assert again.join().message.generation_id == 1

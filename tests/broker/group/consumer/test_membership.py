"""The life of a consumer group, told by its members' heartbeats."""

import pytest

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.consumer.group import ConsumerGroup
from barnabas.broker.group.consumer.member import MemberState
from barnabas.broker.group.kind import listing
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.group.consumer.harness import error, group_of
from tests.broker.group.harness import GROUP, topic_id


@pytest.fixture
def group():
    return group_of(("t", 4), ("u", 2))


def test_the_first_member_gets_everything_at_once(group):
    answer = group.join("a", "t")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
    assert group.owned["a"] == {"t": [0, 1, 2, 3]}
    assert group.state == "Stable"
    assert listing(group.group).group_type == "consumer"


def test_an_assignment_is_told_when_it_changes_and_to_those_who_say_everything(group):
    group.join("a", "t")
    assert group.beat("a").assignment is None
    full = group.beat("a", owned={"t": [0, 1, 2, 3]}, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"])
    assert full.assignment is not None


def test_a_partition_is_given_only_when_its_former_owner_has_let_go(group):
    group.join("a", "t")
    joined = group.join("b", "t")
    assert (joined.member_epoch, group.owned["b"]) == (3, {})
    assert group.state == "Reconciling"

    asked = group.beat("a", owned={"t": [0, 1, 2, 3]})
    kept = group.owned["a"]["t"]
    assert (asked.member_epoch, len(kept)) == (2, 2)  # it stays in its epoch until it has let go
    assert group.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert group.beat("b", owned={}).assignment is None

    assert group.beat("a", owned={"t": kept}).member_epoch == 3
    group.beat("b", owned={})
    assert sorted(group.owned["b"]["t"] + kept) == [0, 1, 2, 3]
    assert group.state == "Stable"


def test_a_member_that_leaves_makes_room(group):
    group.join("a", "t")
    group.join("b", "t")
    group.settle("a", "b")
    left = group.leave("b")
    assert (left.member_id, left.member_epoch) == ("b", -1)
    assert group.state == "Assigning"
    assert group.beat("a", owned=group.owned["a"]).member_epoch == 4
    assert group.owned["a"] == {"t": [0, 1, 2, 3]}


def test_a_member_that_falls_silent_is_removed(group):
    group.join("a", "t")
    group.join("b", "t")
    group.settle("a", "b")
    group.advance(40_000)
    group.beat("a")
    group.advance(6_000)
    assert list(group.group.members) == ["a"]
    assert error(group.beat("b")) == ErrorCode.UNKNOWN_MEMBER_ID
    group.advance(45_000)
    assert group.state == "Empty"
    assert group.coordinator.timers.keys == set()


def test_a_member_may_have_any_id(group):
    """Not even one that sounds like what a timer of another member is for."""
    group.join("a", "t")
    group.join("rebalance a", "t")
    group.settle("a", "rebalance a")
    for _ in range(2):
        group.advance(30_000)
        group.beat("a")
    assert list(group.group.members) == ["a"]


def test_a_member_that_does_not_let_go_in_time_is_removed(group):
    group.join("a", "t", rebalance_timeout_ms=20_000)
    group.join("b", "t")
    for _ in range(3):
        group.advance(10_000)
        answer = group.beat("a", owned={"t": [0, 1, 2, 3]})
        group.beat("b", owned=group.owned["b"])
    assert error(answer) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.owned["b"] == {"t": [0, 1, 2, 3]}


def test_a_member_that_has_let_go_has_time_again(group):
    group.join("a", "t", rebalance_timeout_ms=20_000)
    group.join("b", "t")
    group.settle("a", "b")
    group.advance(30_000)
    assert set(group.group.members) == {"a", "b"}


class TestEpochs:
    def test_an_epoch_from_the_future_is_fenced(self, group):
        group.join("a", "t")
        assert error(group.send("a", 3)) == ErrorCode.FENCED_MEMBER_EPOCH

    def test_the_previous_epoch_is_taken_from_one_who_may_have_missed_the_answer(self, group):
        group.join("a", "t")
        group.join("b", "u")
        group.beat("a", owned={"t": [0, 1, 2, 3]})
        assert group.epochs["a"] == 3
        group.epochs["a"] = 2
        assert error(group.beat("a")) == ErrorCode.FENCED_MEMBER_EPOCH
        assert error(group.beat("a", owned={"u": [0]})) == ErrorCode.FENCED_MEMBER_EPOCH
        assert group.beat("a", owned={"t": [0]}).member_epoch == 3

    def test_a_fenced_member_joins_again_with_epoch_0(self, group):
        group.join("a", "t")
        group.beat("a")
        assert group.join("a", "t").member_epoch == 2
        assert group.owned["a"] == {"t": [0, 1, 2, 3]}

    @pytest.mark.parametrize("epoch", [1, -1])
    def test_without_a_group_there_is_nobody(self, group, epoch):
        assert error(group.send("a", epoch)) == ErrorCode.GROUP_ID_NOT_FOUND

    @pytest.mark.parametrize("epoch", [1, -1])
    def test_a_stranger_is_unknown(self, group, epoch):
        group.join("a", "t")
        assert error(group.send("b", epoch)) == ErrorCode.UNKNOWN_MEMBER_ID


class TestStaticMembers:
    def test_one_that_is_away_keeps_its_partitions_for_its_next_self(self, group):
        group.join("a", "t", instance_id="i")
        group.join("b", "t")
        group.settle("a", "b")
        before = group.owned["a"]
        away = group.leave("a", -2, instance_id="i")
        assert (away.member_id, away.member_epoch) == ("a", -2)
        back = group.join("c", "t", instance_id="i")
        assert (back.member_epoch, group.owned["c"]) == (3, before)
        assert set(group.group.members) == {"b", "c"}
        assert group.state == "Stable"
        assert error(group.send("a", 3, instance_id="i")) == ErrorCode.FENCED_INSTANCE_ID

    def test_one_that_is_back_under_its_own_id_is_removed_when_it_falls_silent(self, group):
        """As a consumer is that has given up its subscription and subscribed again."""
        group.join("a", "t", instance_id="i")
        group.leave("a", -2, instance_id="i")
        group.join("a", "t", instance_id="i")
        group.advance(45_001)
        assert not group.group.members

    def test_one_that_stays_away_is_removed(self, group):
        group.join("a", "t", instance_id="i")
        group.leave("a", -2, instance_id="i")
        group.advance(45_000)
        assert group.state == "Empty"

    def test_an_instance_has_one_member_at_a_time(self, group):
        group.join("a", "t", instance_id="i")
        assert error(group.join("b", "t", instance_id="i")) == ErrorCode.UNRELEASED_INSTANCE_ID
        assert error(group.send("b", 2, instance_id="i")) == ErrorCode.FENCED_INSTANCE_ID
        assert error(group.send("b", 2, instance_id="j")) == ErrorCode.UNKNOWN_MEMBER_ID
        assert error(group.leave("a", -1, instance_id="i")) == ErrorCode.NONE

    def test_an_administrator_removes_it_by_its_instance(self, group):
        group.join("a", "t", instance_id="i")
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[
                MemberIdentity(member_id="", group_instance_id="i"),
                MemberIdentity(member_id="x", group_instance_id="i"),
                MemberIdentity(member_id="", group_instance_id="j"),
            ],
        )
        response, decision = group.coordinator.shard.leave(request, 5)
        group.coordinator.carry_out(decision)
        assert [each.error_code for each in response.members] == [
            ErrorCode.NONE,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert group.state == "Empty"


class TestSubscriptions:
    def test_topics_that_are_no_longer_read_are_taken_away_first(self, group):
        group.join("a", "t", "u")
        group.beat("a", subscribed_topic_names=["u"])
        assert group.owned["a"] == {"u": [0, 1]}
        assert group.beat("a", owned={"u": [0, 1]}).member_epoch == 3

    def test_a_topic_that_appears_or_grows_is_assigned(self, group):
        group.join("a", "t", "new")
        consumers, topics = group.coordinator.shard.consumers, group.coordinator.topics
        topics.create("new", 1)
        consumers.topics_changed({"new"}, are_new=True)
        group.beat("a", owned=group.owned["a"])
        assert (group.epochs["a"], group.owned["a"]) == (3, {"t": [0, 1, 2, 3], "new": [0]})
        topics.create("new", 2)
        consumers.topics_changed({"new"}, are_new=False)
        group.beat("a", owned=group.owned["a"])
        assert (group.epochs["a"], group.owned["a"]["new"]) == (4, [0, 1])

    def test_a_change_that_makes_no_difference_is_none(self, group):
        group.join("a", "t")
        group.coordinator.shard.consumers.topics_changed({"t"}, are_new=False)
        assert group.beat("a").member_epoch == 2

    def test_a_member_that_reads_nothing_is_a_member(self, group):
        assert group.join("a").member_epoch == 1
        assert group.owned["a"] == {}
        assert group.state == "Stable"

    def test_members_choose_the_assignor_by_majority(self, group):
        group.join("a", "t", "u", server_assignor="range")
        group.join("b", "t", "u")
        group.settle("a", "b")
        assert group.owned["a"] == {"t": [0, 1], "u": [0]}

    def test_of_two_assignors_the_one_that_nobody_wanted_before_is_chosen(self, group):
        group.join("b", "t", server_assignor="uniform")
        group.advance(1000)
        group.join("a", "t", server_assignor="range")
        assert group.group.target["a"] == {topic_id("t"): frozenset({0, 1})}  # by range
        assert group.group.preferred_assignor(group.group.members.values(), "") == "uniform"

    def test_a_member_that_becomes_a_static_one_has_to_wait_for_its_next_target(self, group):
        group.join("a", "t")
        group.advance(1000)
        group.join("b", "t")
        answer = group.join("a", "t", instance_id="i")
        assert (answer.member_epoch, answer.assignment.topic_partitions) == (3, [])

    def test_a_new_member_that_reads_nothing_does_not_change_how_others_are_assigned(self, group):
        group.join("a", "t")
        group.join("b", "t")
        group.leave("b")
        group.advance(1000)
        group.join("c")
        assert group.group.target["c"] == {topic_id("t"): frozenset({2, 3})}  # they are taken for equals, as in Kafka


class TestPatterns:
    def test_topics_are_looked_up_after_the_heartbeat_that_asks_for_them(self, group):
        joined = group.join("a", subscribed_topic_regex="t|x.*")
        assert (joined.member_epoch, group.owned["a"]) == (1, {})
        group.advance(0)
        group.beat("a", owned={})
        assert (group.epochs["a"], group.owned["a"]) == (2, {"t": [0, 1, 2, 3]})

    def test_a_clock_that_is_put_back_hides_no_topics(self, group):
        group.join("a", subscribed_topic_regex="t|x.*")
        group.advance(0)
        group.beat("a", owned={})
        group.coordinator.clock_ahead_ms = -3_600_000
        group.coordinator.topics.create("x1", 1)
        group.coordinator.shard.consumers.topics_changed({"x1"}, are_new=True)
        for _ in range(2):
            group.beat("a", owned=group.owned["a"])
            group.advance(0)
        assert group.owned["a"] == {"t": [0, 1, 2, 3], "x1": [0]}

    def test_new_topics_are_seen_after_a_while(self, group):
        group.join("a", subscribed_topic_regex="t|x.*")
        group.advance(0)
        group.beat("a", owned={})
        group.coordinator.topics.create("x1", 1)
        group.coordinator.shard.consumers.topics_changed({"x1"}, are_new=True)
        group.beat("a", owned=group.owned["a"])
        group.advance(10_001)
        for _ in range(2):
            group.beat("a", owned=group.owned["a"])
            group.advance(0)
        group.beat("a", owned=group.owned["a"])
        assert group.owned["a"] == {"t": [0, 1, 2, 3], "x1": [0]}

    def test_a_client_gets_only_topics_that_it_may_see(self, group):
        group.join("a", subscribed_topic_regex=".*", may_describe=lambda name: name != "t")
        group.advance(0)
        group.beat("a", owned={})
        assert group.owned["a"] == {"u": [0, 1]}

    def test_a_pattern_that_is_none_is_refused(self, group):
        answer = group.join("a", subscribed_topic_regex="(")
        assert error(answer) == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert GROUP not in group.coordinator.shard.groups

    def test_the_last_member_takes_its_pattern_along(self, group):
        group.join("a", subscribed_topic_regex="t")
        group.join("b", subscribed_topic_regex="t")
        group.advance(0)
        assert set(group.group.regexes) == {"t"}
        group.leave("a")
        assert set(group.group.regexes) == {"t"}
        group.leave("b")
        assert group.group.regexes == {}
        assert group.reloaded().group.regexes == {}

    def test_a_member_changes_from_a_pattern_to_names(self, group):
        group.join("a", subscribed_topic_regex="t")
        group.advance(0)
        group.beat("a", owned={})
        group.beat("a", owned=group.owned["a"], subscribed_topic_regex="", subscribed_topic_names=["u"])
        group.settle("a")
        assert group.owned["a"] == {"u": [0, 1]}
        assert group.group.regexes == {}


class TestBounds:
    def test_a_group_may_be_full(self):
        group = group_of(("t", 1), group_consumer_max_size=1)
        group.join("a", "t")
        assert error(group.join("b", "t")) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert error(group.beat("a")) == ErrorCode.NONE

    def test_assignments_are_computed_now_and_then(self):
        group = group_of(("t", 2), group_consumer_assignment_interval_ms=1000)
        group.join("a", "t")
        assert group.join("b", "t").member_epoch == 2  # the target is still that of before
        assert group.state == "Assigning"
        group.advance(1000)
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"]["t"]) == [0, 1]

    def test_a_clock_that_is_put_back_delays_no_assignment(self):
        """So it is with a new coordinator whose clock is behind that of the last one."""
        group = group_of(("t", 2), group_consumer_assignment_interval_ms=1000)
        group.join("a", "t")
        group.coordinator.clock_ahead_ms = -3_600_000
        assert group.join("b", "t").member_epoch == 3
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"]["t"]) == [0, 1]

    @pytest.mark.parametrize("hours", [-1, 1])
    def test_a_clock_that_jumps_neither_ends_nor_prolongs_a_session(self, group, hours):
        group.join("a", "t")
        group.join("b", "t")
        group.advance(44_000)
        group.beat("a")
        group.coordinator.clock_ahead_ms = hours * 3_600_000
        group.advance(1000)
        assert set(group.group.members) == {"a"}

    @pytest.mark.parametrize("others", [("t",), ("t", "x")])
    def test_partitions_that_only_the_last_coordinator_knew(self, others):
        group = group_of(("t", 3), ("x", 1))
        group.join("a", "t")
        assert group.owned["a"] == {"t": [0, 1, 2]}
        group.coordinator.topics.create("t", 2)  # this one has not heard of the third yet
        assert error(group.join("b", *others)) == ErrorCode.NONE
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"].get("t", [])) == [0, 1]
        group.coordinator.topics.create("t", 3)
        group.coordinator.shard.consumers.topics_changed({"t"}, are_new=False)
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"].get("t", [])) == [0, 1, 2]

    def test_a_group_has_settings_of_its_own(self, group):
        group.coordinator.group_configs[GROUP] = {
            "consumer.session.timeout.ms": "50000",
            "consumer.heartbeat.interval.ms": "1",
        }
        assert group.join("a", "t").heartbeat_interval_ms == 5000  # the broker's lower bound
        group.advance(49_999)
        assert group.state == "Stable"
        group.advance(1)
        assert group.state == "Empty"


INVALID = {
    "no member id": {"member_id": ""},
    "no group id": {"group_id": ""},
    "no instance id": {"instance_id": ""},
    "no rack id": {"rack_id": ""},
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "partitions while it joins": {"topic_partitions": None},
    "no subscription": {"subscribed_topic_names": None},
    "an epoch that is none": {"epoch": -3},
    "away, but not static": {"epoch": -2},
}


@pytest.mark.parametrize("fields", INVALID.values(), ids=INVALID)
def test_what_is_wrong_with_any_group(group, fields):
    fields = {
        "member_id": "a",
        "epoch": 0,
        "rebalance_timeout_ms": 1000,
        "topic_partitions": [],
        "subscribed_topic_names": ["t"],
        **fields,
    }
    assert error(group.send(**fields)) == ErrorCode.INVALID_REQUEST


def test_version_0_gives_members_their_ids(group):
    answer = group.send("", 0, version=0, rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["t"])
    assert answer.member_id == "id1"


def test_an_assignor_that_is_not_there_is_refused(group):
    assert error(group.join("a", "t", server_assignor="best")) == ErrorCode.UNSUPPORTED_ASSIGNOR


class TestOtherKinds:
    def test_an_empty_classic_group_becomes_a_consumer_group_and_the_reverse(self, group):
        coordinator = group.coordinator
        (member,) = coordinator.stable_with(1)
        assert error(group.join("a", "t")) == ErrorCode.GROUP_ID_NOT_FOUND
        coordinator.leave(member)
        assert group.join("a", "t").member_epoch == 2
        assert isinstance(group.reloaded().group, ConsumerGroup)

        assert coordinator.join().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert coordinator.heartbeat("a", 1) == ErrorCode.UNKNOWN_MEMBER_ID
        group.leave("a")
        coordinator.stable_with(1)
        assert coordinator.reloaded().state == "Stable"

    def test_a_group_that_only_had_offsets_becomes_one(self, group):
        assert group.commit("", -1, ("t", 0)) == ErrorCode.NONE
        group.join("a", "t")
        assert isinstance(group.reloaded().group, ConsumerGroup)


class TestOffsets:
    def test_members_commit_with_their_epoch(self, group):
        group.join("a", "t")
        assert group.commit("a", 2, ("t", 0)) == ErrorCode.NONE
        assert group.commit("a", 3, ("t", 0)) == ErrorCode.STALE_MEMBER_EPOCH
        assert group.commit("b", 2, ("t", 0)) == ErrorCode.UNKNOWN_MEMBER_ID
        assert group.commit("", -1, ("t", 0)) == ErrorCode.UNKNOWN_MEMBER_ID
        assert group.commit("a", 2, ("t", 0), version=8) == ErrorCode.UNSUPPORTED_VERSION
        assert group.commit("a", 3, ("t", 0), in_transaction=True) == ErrorCode.ILLEGAL_GENERATION

    def test_an_older_epoch_is_good_for_partitions_that_it_has_had_since(self, group):
        group.join("a", "t")
        group.join("b", "u")
        group.beat("a", owned={"t": [0, 1, 2, 3]})
        assert group.epochs["a"] == 3
        assert group.commit("a", 2, ("t", 0)) == ErrorCode.NONE
        assert group.commit("a", 1, ("t", 0)) == ErrorCode.STALE_MEMBER_EPOCH
        assert group.commit("a", 2, ("u", 0)) == ErrorCode.STALE_MEMBER_EPOCH

    def test_members_read_with_their_epoch(self, group):
        group.join("a", "t")
        shard = group.coordinator.shard
        assert shard.objection_to_fetch(GROUP, None, -1) == ErrorCode.NONE
        assert shard.objection_to_fetch(GROUP, "a", 2) == ErrorCode.NONE
        assert shard.objection_to_fetch(GROUP, "a", 3) == ErrorCode.STALE_MEMBER_EPOCH
        assert shard.objection_to_fetch(GROUP, "b", 2) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_offsets_of_topics_that_it_reads_stay(self, group):
        group.join("a", "t")
        group.commit("a", 2, ("t", 0), ("u", 0))
        group.advance(1000)
        shard = group.coordinator.shard
        group.coordinator.carry_out(_records(shard.expire(GROUP, 1000)))
        assert set(shard.offsets.of_group(GROUP)) == {("t", 0)}
        error_code, errors, _ = shard.delete_offsets(GROUP, [("t", 0), ("u", 0)])
        assert (error_code, list(errors.values())) == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE])

    def test_an_empty_group_goes_with_its_last_offset(self, group):
        group.join("a", "t")
        group.commit("a", 2, ("t", 0))
        group.leave("a")
        group.advance(1000)
        shard = group.coordinator.shard
        group.coordinator.carry_out(_records(shard.expire(GROUP, 1000)))
        assert GROUP not in shard.groups
        assert GROUP not in group.reloaded().coordinator.shard.groups

    def test_only_an_empty_group_is_deleted(self, group):
        group.join("a", "t")
        told = []
        shard = group.coordinator.shard
        group.coordinator.carry_out(shard.delete_group(GROUP, told.append))
        group.leave("a")
        group.coordinator.carry_out(shard.delete_group(GROUP, told.append))
        assert told == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
        assert GROUP not in group.reloaded().coordinator.shard.groups


def test_another_coordinator_goes_on_where_this_one_was(group):
    group.join("a", "t", instance_id="i")
    group.join("b", "t")
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    other = group.reloaded()
    assert other.state == "Reconciling"
    assert other.group.members == group.group.members
    assert other.group.target == group.group.target
    other.settle("a", "b")
    assert other.state == "Stable"
    other.advance(45_000)
    assert other.state == "Empty"


def test_a_failed_append_changes_nothing(group):
    group.join("a", "t")
    group.coordinator.append_error = ErrorCode.NOT_COORDINATOR
    group.coordinator.topics.create("t", 6)
    group.coordinator.shard.consumers.topics_changed({"t"}, are_new=False)
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert group.group.epoch == 2
    group.coordinator.append_error = ErrorCode.NONE
    group.epochs["a"] = 2
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert group.owned["a"] == {"t": [0, 1, 2, 3, 4, 5]}


def _records(records):
    return CoordinatorResult(records)


def test_a_member_that_kept_partitions_and_could_not_be_removed_is_removed_later(group):
    group.join("a", "t")
    group.join("b", "t")
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    group.coordinator.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.advance(40_000)
    for member_id in "ab":
        group.beat(member_id)
    group.advance(20_000)
    assert set(group.group.members) == {"a", "b"}
    group.coordinator.append_error = ErrorCode.NONE
    group.advance(500)
    assert set(group.group.members) == {"b"}


def test_a_failure_that_is_heard_late_does_not_hide_a_new_partition(group):
    group.join("a", "t")
    _, decision = group.decide("a", 2)
    group.coordinator.topics.create("t", 6)
    group.coordinator.shard.consumers.topics_changed({"t"}, are_new=False)
    decision.done(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # what came before it was not committed in time
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert group.owned["a"] == {"t": [0, 1, 2, 3, 4, 5]}

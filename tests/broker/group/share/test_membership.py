"""Share groups: members come and go, partitions get their states and are shared."""

import pytest

from barnabas.broker.group.kind import Committer
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import GROUP, topic_id
from tests.broker.group.share.harness import error, group_of


@pytest.fixture
def group():
    return group_of(("t", 3), ("u", 2))


class TestJoining:
    def test_partitions_come_when_their_states_are_there(self, group):
        group.states.holds = True
        joined = group.join("a", "t")
        assert (joined.member_epoch, joined.heartbeat_interval_ms, joined.assignment.topic_partitions) == (2, 5000, [])
        assert group.beat("a").assignment is None
        group.states.go_on()
        assert group.beat("a").member_epoch == 3
        assert group.owned["a"] == {"t": [0, 1, 2]}
        assert group.group.state_name == "Stable"

    def test_partitions_are_shared_when_there_are_too_few(self, group):
        for member in "abcd":
            group.join(member, "u")
        group.settle(*"abcd")
        assert sorted(index for owned in group.owned.values() for index in owned["u"]) == [0, 0, 1, 1]

    def test_members_with_other_subscriptions_get_other_topics(self, group):
        group.join("a", "t")
        group.join("b", "t", "u")
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"]["t"]) == [0, 1, 2]
        assert group.owned["b"]["u"] == [0, 1]
        group.beat("b", "u")
        group.settle("a", "b")
        assert (group.owned["a"], group.owned["b"]) == ({"t": [0, 1, 2]}, {"u": [0, 1]})

    def test_a_group_may_be_full(self):
        group = group_of(("t", 1), group_share_max_size=1)
        group.join("a", "t")
        assert error(group.join("b", "t")) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert not error(group.join("a", "t"))

    def test_a_topic_that_comes_later(self, group):
        group.join("a", "later")
        assert group.owned["a"] == {}
        group.coordinator.topics.create("later", 2)
        group.coordinator.shard.topics_changed({"later"}, are_new=True)
        group.settle("a")
        assert group.owned["a"] == {"later": [0, 1]}

    def test_a_topic_that_grows(self, group):
        group.join("a", "t")
        group.settle("a")
        group.coordinator.topics.create("t", 4)
        group.coordinator.shard.topics_changed({"t"}, are_new=False)
        group.settle("a")
        assert group.owned["a"] == {"t": [0, 1, 2, 3]}


class TestEpochs:
    def test_a_member_in_another_epoch_is_fenced(self, group):
        group.join("a", "t")
        group.settle("a")
        assert group.epochs["a"] == 3
        for epoch, expected in ((4, True), (1, True), (2, False), (3, False)):
            assert error(group.send("a", epoch)) == (ErrorCode.FENCED_MEMBER_EPOCH if expected else ErrorCode.NONE)

    def test_who_is_not_a_member_has_to_join(self, group):
        assert error(group.send("a", 1)) == ErrorCode.GROUP_ID_NOT_FOUND
        assert error(group.leave("a")) == ErrorCode.GROUP_ID_NOT_FOUND
        group.join("a", "t")
        assert error(group.send("b", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
        assert error(group.leave("b")) == ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize(
        ("member_id", "epoch", "topics", "fields"),
        [
            (" ", 0, ["t"], {}),
            ("a", 0, None, {}),
            ("a", 0, [], {}),
            ("a", -2, ["t"], {}),
            ("a", 0, ["t"], {"rack_id": " "}),
        ],
    )
    def test_requests_that_make_no_sense(self, group, member_id, epoch, topics, fields):
        assert error(group.send(member_id, epoch, topics, **fields)) == ErrorCode.INVALID_REQUEST

    def test_an_assignment_is_not_computed_too_often(self):
        group = group_of(("t", 2), group_share_assignment_interval_ms=1000)
        group.join("a", "t")
        group.beat("a")
        assert group.epochs["a"] == 2
        group.advance(1000)
        group.beat("a")
        assert (group.epochs["a"], group.owned["a"]) == (3, {"t": [0, 1]})

    def test_a_clock_that_is_put_back_delays_no_assignment(self):
        group = group_of(("t", 2), group_share_assignment_interval_ms=1000)
        group.join("a", "t")
        group.coordinator.clock_ahead_ms = -3_600_000
        group.beat("a")
        assert (group.epochs["a"], group.owned["a"]) == (3, {"t": [0, 1]})

    def test_partitions_that_only_the_last_coordinator_knew(self):
        group = group_of(("t", 3))
        group.join("a", "t")
        group.beat("a")
        assert group.owned["a"] == {"t": [0, 1, 2]}
        group.coordinator.topics.create("t", 2)  # this one has not heard of the third yet
        group.join("b", "t")
        group.settle("a", "b")
        assert sorted(group.owned["a"]["t"] + group.owned["b"]["t"]) == [0, 1]


class TestLeaving:
    def test_what_a_member_had_goes_to_the_others(self, group):
        for member in "ab":
            group.join(member, "t")
        group.settle("a", "b")
        left = group.leave("b")
        assert (left.member_epoch, left.assignment) == (-1, None)
        group.settle("a")
        assert group.owned["a"] == {"t": [0, 1, 2]}

    def test_a_silent_member_is_removed(self, group):
        group.join("a", "t")
        group.advance(44_999)
        group.beat("a")
        group.advance(44_999)
        assert list(group.group.members) == ["a"]
        group.advance(1)
        assert group.group.is_empty

    def test_its_own_session_timeout_counts_within_the_bounds(self, group):
        group.coordinator.group_configs[GROUP] = {"share.session.timeout.ms": "70000"}
        group.join("a", "t")
        group.advance(59_999)
        assert not group.group.is_empty
        group.advance(1)
        assert group.group.is_empty

    def test_an_empty_group_stays_and_no_other_kind_takes_its_place(self, group):
        group.join("a", "t")
        group.leave("a")
        assert group.coordinator.shard.expire(GROUP, 0) == []
        by = Committer("", None, -1, 9)
        told = []
        group.coordinator.carry_out(group.coordinator.shard.commit(GROUP, by, [], told.append))
        assert told == [ErrorCode.GROUP_ID_NOT_FOUND]


class TestStates:
    def test_a_failure_is_tried_again_with_the_next_heartbeat(self, group):
        group.states.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        group.join("a", "t")
        assert group.group.state_partitions.initializing == {}
        group.states.error = ErrorCode.NONE
        group.settle("a")
        assert group.owned["a"] == {"t": [0, 1, 2]}

    def test_an_answer_that_never_comes_is_asked_for_again_after_a_while(self, group):
        group.states.holds = True
        group.join("a", "t")
        appended = len(group.coordinator.records)
        group.advance(29_999)
        group.beat("a")
        assert len(group.coordinator.records) == appended
        group.advance(1)
        group.beat("a")
        assert len(group.coordinator.records) == appended + 1
        group.states.go_on()

    def test_the_states_go_with_the_group(self, group):
        group.join("a", "t")
        assert group.delete() == ErrorCode.NON_EMPTY_GROUP
        group.leave("a")
        assert len(group.states.states) == 3
        assert group.delete() == ErrorCode.NONE
        assert (group.states.states, group.coordinator.shard.groups) == ({}, {})

    def test_a_group_whose_states_cannot_be_deleted_stays_for_another_try(self, group):
        group.join("a", "t")
        group.leave("a")
        group.states.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert group.delete() == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert list(group.group.state_partitions.deleting.values()) == ["t"]
        group.states.error = ErrorCode.NONE
        assert group.delete() == ErrorCode.NONE
        assert group.states.states == {}

    def test_a_member_that_comes_while_a_group_is_deleted_keeps_it(self, group):
        group.join("a", "t")
        group.leave("a")
        group.states.holds = True
        told = []
        group.coordinator.carry_out(group.coordinator.shard.delete_group(GROUP, told.append))
        group.join("a", "t")
        group.states.go_on()
        assert told == [ErrorCode.NON_EMPTY_GROUP]

    def test_a_deleted_topic_has_no_states(self, group):
        group.join("a", "t")
        for record in group.coordinator.shard.forget_topics({"t": topic_id("t")}):
            group.coordinator.shard.replay(record.read)
        assert group.group.state_partitions.initialized == {}

    def test_another_coordinator_goes_on_where_this_one_was(self, group):
        group.join("a", "t")
        group.settle("a")
        other = group.reloaded()
        assert other.group.state_partitions == group.group.state_partitions
        assert other.beat("a").error_code == ErrorCode.NONE
        assert other.group.members == group.group.members
        other.advance(45_000)
        assert other.group.is_empty


class TestOffsets:
    def test_a_group_begins_where_it_is_told(self, group):
        response = group.alter(("t", 1, 7), ("t", 3, 7), ("nothing", 0, 0))
        codes = {(t.topic_name, p.partition_index): p.error_code for t in response.responses for p in t.partitions}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == {("t", 1): 0, ("t", 3): unknown, ("nothing", 0): unknown}
        assert group.states.states == {(GROUP, topic_id("t"), 1): 7}
        assert group.group.is_empty

    def test_not_while_it_has_members(self, group):
        group.join("a", "t")
        assert error(group.alter(("t", 0, 0))) == ErrorCode.NON_EMPTY_GROUP
        assert error(group.forget("t")) == ErrorCode.NON_EMPTY_GROUP

    def test_offsets_are_forgotten_by_topic(self, group):
        assert error(group.forget("t")) == ErrorCode.GROUP_ID_NOT_FOUND
        group.join("a", "t", "u")
        group.leave("a")
        response = group.forget("t", "nothing")
        assert {each.topic_name: each.error_code for each in response.responses} == {
            "t": ErrorCode.NONE,
            "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert list(group.group.state_partitions.initialized) == [topic_id("u")]
        assert {key[1] for key in group.states.states} == {topic_id("u")}

    def test_what_could_not_be_forgotten_can_be_tried_again(self, group):
        group.join("a", "t")
        group.leave("a")
        group.states.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        (failed,) = group.forget("t").responses
        assert failed.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        group.states.error = ErrorCode.NONE
        (done,) = group.forget("t").responses
        assert (done.error_code, group.states.states) == (ErrorCode.NONE, {})

"""The life of a streams group, told by its members' heartbeats. tests/integration/groups compares it with Kafka's."""

import pytest

from barnabas.broker.group.kind import listing
from barnabas.broker.group.streams.member import MemberState
from barnabas.broker.group.streams.statuses import StatusCode
from barnabas.client.requests.streams import subtopology, topic_info, topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import RequestEndpoint
from tests.broker.group.harness import GROUP
from tests.broker.group.streams.harness import SIMPLE, codes, group_of, told

ALL = {"0": [0, 1, 2, 3]}
STATEFUL = topology(subtopology("0", "t", changelogs=[topic_info("log", configs=[("cleanup.policy", "compact")])]))
HERE = RequestEndpoint(host="here", port=80)


@pytest.fixture
def group():
    return group_of(("t", 4))


def test_the_first_member_gets_every_task(group):
    answer = group.join("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
    assert group.active["a"] == ALL
    assert group.state == "Stable"
    assert listing(group.group).group_type == "streams"
    assert group.beat("a").active_tasks is None  # nothing is new


def test_a_task_is_given_only_when_its_former_owner_has_let_go(group):
    group.join("a")
    group.join("b")
    assert (group.active["b"], group.state) == ({}, "Reconciling")
    asked = group.beat("a", active=ALL)
    assert (asked.member_epoch, group.active["a"]) == (2, {"0": [0, 1]})
    assert group.group.members["a"].state is MemberState.UNREVOKED_TASKS
    assert group.beat("b", active={}).active_tasks is None
    assert group.obey("a").member_epoch == 3
    group.obey("b")
    assert group.active["b"] == {"0": [2, 3]}
    assert group.state == "Stable"


def test_a_member_that_does_not_let_go_in_time_is_removed(group):
    group.join("a", rebalance_timeout_ms=10_000)
    group.join("b")
    group.beat("a", active=ALL)
    group.advance(10_000)
    assert list(group.group.members) == ["b"]
    group.beat("b", active={})
    assert group.active["b"] == ALL


def test_a_member_that_falls_silent_is_removed(group):
    group.join("a")
    group.advance(40_000)
    group.beat("a")
    group.advance(44_999)
    assert group.state == "Stable"
    group.advance(1)
    assert group.state == "Empty"
    assert not group.coordinator.timers.keys


def test_standby_tasks_are_in_other_processes():
    group = group_of(("t", 4), ("log", 4), reads=STATEFUL, group_streams_num_standby_replicas=1)
    for member_id, process in (("a", "p"), ("b", "p"), ("c", "q")):
        group.join(member_id, process_id=process)
    group.settle("a", "b", "c")
    members = group.group.members
    in_p, in_q = (
        {index for id in ids for index in members[id].assigned.active.get("0", ())} for ids in (("a", "b"), ("c",))
    )
    assert in_p | in_q == {0, 1, 2, 3}
    assert members["c"].assigned.standby["0"] == in_p
    assert {index for id in ("a", "b") for index in members[id].assigned.standby.get("0", ())} == in_q
    assert group.state == "Stable"


def test_a_setting_of_the_group_raises_its_epoch():
    group = group_of(("t", 4), ("log", 4), reads=STATEFUL)
    group.join("a")
    group.join("b")
    group.settle("a", "b")
    group.coordinator.group_configs[GROUP] = {"streams.num.standby.replicas": "1"}
    group.settle("a", "b")
    assert group.group.epoch == 4
    assert all(member.assigned.standby for member in group.group.members.values())


def test_the_first_assignment_may_wait_for_more_members():
    group = group_of(("t", 4), group_streams_initial_rebalance_delay_ms=3000)
    assert codes(group.join("a")) == [StatusCode.ASSIGNMENT_DELAYED]
    group.join("b")
    group.advance(2999)
    assert codes(group.beat("a")) == [StatusCode.ASSIGNMENT_DELAYED]
    assert group.active == {"a": {}, "b": {}}
    group.advance(1)
    assert codes(group.beat("a")) == []
    group.beat("b")
    assert [len(group.active[id]["0"]) for id in ("a", "b")] == [2, 2]


def test_assignments_are_not_computed_too_often():
    group = group_of(("t", 4), group_streams_assignment_interval_ms=1000)
    group.join("a")
    assert codes(group.join("b")) == [StatusCode.ASSIGNMENT_DELAYED]
    assert group.state == "Assigning"
    group.advance(1000)
    assert codes(group.beat("b")) == []
    assert group.state == "Reconciling"


def test_a_clock_that_is_put_back_delays_no_assignment():
    group = group_of(("t", 4), group_streams_assignment_interval_ms=1000)
    group.join("a")
    group.coordinator.clock_ahead_ms = -3_600_000
    assert codes(group.join("b")) == []


def test_own_topics_that_are_missing_are_to_be_created(group):
    group.reads = STATEFUL
    answer = group.join("a")
    assert codes(answer) == [StatusCode.MISSING_INTERNAL_TOPICS]
    (topic,) = group.missing
    assert (topic.name, topic.partitions, topic.replication_factor) == ("log", 4, 0)
    assert topic.configs == {"cleanup.policy": "compact"}
    assert group.state == "NotReady"
    group.create_topic("log", 4)
    assert codes(group.beat("a", active={})) == []
    assert group.active["a"] == ALL


def test_a_source_topic_that_comes_later():
    group = group_of()
    assert codes(group.join("a")) == [StatusCode.MISSING_SOURCE_TOPICS]
    group.create_topic("other", 1)
    assert group.beat("a", active={}).member_epoch == 2
    group.create_topic("t", 4)
    assert group.beat("a", active={}).member_epoch == 3
    assert group.active["a"] == ALL


def test_an_endpoint_is_told_to_everybody(group):
    group.join("a", user_endpoint=HERE)
    group.join("b")
    group.beat("a", active=ALL)
    (endpoint,) = group.beat("b").partitions_by_user_endpoint
    assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("here", 80)
    assert [(each.topic, each.partitions) for each in endpoint.active_partitions] == [("t", [0, 1])]
    known = group.group.endpoint_epoch
    assert group.beat("b", endpoint_information_epoch=known).partitions_by_user_endpoint is None


def test_an_endpoint_is_no_obstacle_while_topics_are_missing():
    """Apache Kafka 4.3 answers this with UNKNOWN_SERVER_ERROR, and the application ends."""
    group = group_of()
    answer = group.join("a", user_endpoint=HERE)
    assert (answer.error_code, codes(answer)) == (0, [StatusCode.MISSING_SOURCE_TOPICS])
    assert [each.active_partitions for each in answer.partitions_by_user_endpoint] == [[]]


def test_who_asked_for_a_shutdown_is_forgotten_with_the_last_member(group):
    group.join("a")
    assert codes(group.beat("a", shutdown_application=True)) == [StatusCode.SHUTDOWN_APPLICATION]
    group.send("a", -1)
    assert codes(group.join("a")) == []


def test_a_reloaded_group_goes_on(group):
    group.join("a", tags=[("zone", "z")], user_endpoint=HERE)
    group.join("b")
    group.beat("a", active=ALL)
    other = group.reloaded()
    assert other.group.members == group.group.members
    assert other.group.target == group.group.target
    assert (other.state, other.group.epoch, other.group.topology.epoch) == ("Reconciling", 3, 0)
    assert other.obey("a").member_epoch == 3
    other.obey("b")
    assert other.state == "Stable"
    other.advance(45_000)
    assert other.state == "Empty"


def test_a_member_that_was_letting_go_when_its_group_was_reloaded_has_to_do_it_in_time(group):
    group.join("a", rebalance_timeout_ms=10_000)
    group.join("b")
    group.beat("a", active=ALL)
    other = group.reloaded()
    other.advance(10_000)
    assert list(other.group.members) == ["b"]


def test_a_failed_append_changes_nothing(group):
    group.join("a")
    group.coordinator.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.create_topic("t", 5)
    group.send("a", 2, active=ALL)
    group.coordinator.append_error = ErrorCode.NONE
    group.epochs["a"] = 2
    assert told(group.beat("a", active=ALL).active_tasks) == {"0": [0, 1, 2, 3, 4]}


def test_a_deleted_group_leaves_nothing(group):
    group.join("a")
    group.send("a", -1)
    errors = []
    group.coordinator.carry_out(group.coordinator.shard.delete_group(GROUP, errors.append))
    assert errors == [ErrorCode.NONE]
    assert not group.coordinator.shard.groups
    assert not group.reloaded().coordinator.shard.groups


def test_commits_carry_the_epoch_of_the_member(group):
    group.join("a")
    assert group.commit("a", 2, ("t", 0)) == ErrorCode.NONE
    assert group.commit("a", 3, ("t", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert group.commit("a", 3, ("t", 0), in_transaction=True) == ErrorCode.ILLEGAL_GENERATION
    assert group.commit("a", 2, ("t", 0), version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert group.commit("b", 2, ("t", 0)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit("", -1, ("t", 0)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.commit("", -1, ("t", 0), in_transaction=True) == ErrorCode.NONE
    group.join("b")
    group.beat("a", active={"0": [0, 1]})
    assert group.epochs["a"] == 3
    assert group.commit("a", 2, ("t", 0)) == ErrorCode.NONE  # it has had that since
    assert group.commit("a", 2, ("t", 2)) == ErrorCode.STALE_MEMBER_EPOCH
    assert group.commit("a", 2, ("u", 0)) == ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_of_topics_that_it_reads_stay_while_it_has_members(group):
    group.join("a")
    assert list(group.group.read_topics()) == ["t"]
    group.send("a", -1)
    assert not group.group.read_topics()


def test_members_of_a_full_group():
    group = group_of(("t", 4), group_streams_max_size=1)
    group.join("a")
    assert group.join("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_order_of_subtopologies_does_not_matter():
    two = [subtopology("0", "t"), subtopology("1", "t")]
    group = group_of(("t", 4), reads=topology(*two))
    group.join("a")
    group.reads = topology(*reversed(two))
    assert group.join("b").error_code == ErrorCode.NONE
    group.reads = SIMPLE
    assert group.join("c").error_code == ErrorCode.INVALID_REQUEST

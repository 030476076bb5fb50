"""The same stories of consumer groups, played to Apache Kafka and to Barnabas, get the same answers.

A story is played by members with a connection each. The ids that a broker gives them are replaced by their names, and
so nothing is left that may differ.
"""

import pytest

from protocol.api import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from tests.support import group_requests as requests
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.group_requests import LEVELS, STATIC_MEMBERS, subscription
from tests.support.group_side import GroupSide
from tests.support.side_by_side import SideBySide

pytestmark = pytest.mark.java

SETTINGS = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "3",
    "offset.metadata.max.bytes": "100",
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with ApacheKafka(SETTINGS) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=SETTINGS) as barnabas:
        sides = SideBySide(GroupSide(kafka.port), GroupSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            # Nothing tells a client that a coordinator has made its topic and loaded it; asking is all there is.
            while side.ask(ApiKey.FIND_COORDINATOR, requests.find_coordinator(0, "g"), 0).error_code:
                pass
            for group in ("a", "b"):  # of either partition
                while side.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group]), 0).groups[0].error_code:
                    pass
        yield sides
        sides.kafka.close()
        sides.barnabas.close()


STORIES = []


def story(levels=LEVELS):
    """Mark a story, and say at which levels it is told."""

    def mark(function):
        STORIES.extend(pytest.param(function, level, id=f"{function.__name__}-{level}") for level in levels)
        return function

    return mark


# --- finding the coordinator ---


@story(range(7))
def the_coordinator_of_a_group(side):
    version = side.version(ApiKey.FIND_COORDINATOR)
    for keys in (["g"], [""], ["a", "b", "a"], []):
        if version >= 4 or len(keys) == 1:
            yield side.of(ApiKey.FIND_COORDINATOR, requests.find_coordinator(version, *keys))


@story(range(1, 7))
def the_coordinator_of_something_unknown(side):
    version = side.version(ApiKey.FIND_COORDINATOR)
    for key_type in (3, -1, *((2,) if version < 6 else ())):
        yield side.of(ApiKey.FIND_COORDINATOR, requests.find_coordinator(version, "k", key_type=key_type))
    if version >= 6:
        for key in ("", "g", "g:t:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
            yield side.of(ApiKey.FIND_COORDINATOR, requests.find_coordinator(version, key, key_type=2))


# --- joining ---

REFUSED = {
    "no group id": {"group": ""},
    "a session that is too short": {"session_timeout_ms": 5999},
    "a session that is too long": {"session_timeout_ms": 1_800_001},
    "no protocols": {"protocols": ()},
    "no protocol type": {"protocol_type": ""},
    "an unknown member": {"member": "nobody"},
    "an unknown member with no protocols": {"member": "nobody", "protocols": ()},
    "an unknown member and too short a session": {"member": "nobody", "session_timeout_ms": 1},
    "another protocol type": {"protocol_type": "connect"},
    "another protocol": {"protocols": (("sticky", b""),)},
}


@story()
def joins_that_are_refused_by_a_group_that_does_not_exist(side):
    for name, fields in REFUSED.items():
        if name not in ("another protocol type", "another protocol"):
            group = fields.get("group", f"{side.group}-{name}")
            yield side.of(ApiKey.JOIN_GROUP, requests.join(**{**fields, "group": group}))
            if name in ("no protocols", "no protocol type"):
                side.known(group)
    yield side.listed()


@story()
def joins_that_are_refused_by_a_stable_group(side):
    side.stable("A")
    for fields in REFUSED.values():
        yield side.of(ApiKey.JOIN_GROUP, requests.join(**{"group": side.group, **fields}))
    yield side.describe()


@story(STATIC_MEMBERS)
def joins_of_static_members_that_are_refused(side):
    side.stable("A", group_instance_id="a")
    for fields in (
        {"member": "nobody", "group_instance_id": "a"},
        {"member": "nobody", "group_instance_id": "b"},
        {"member": side.ids["A"], "group_instance_id": "b"},
        {"member": "", "group_instance_id": "a", "protocols": (("sticky", b""),)},
        {"member": "", "group_instance_id": "a", "protocol_type": "connect"},
    ):
        yield side.of(ApiKey.JOIN_GROUP, requests.join(side.group, **fields))
        yield side.describe()


@story()
def a_member_joins_and_leads(side):
    yield side.join("A", protocols=(("range", b"r"), ("sticky", b"s")))
    side.known(side.group)
    yield side.describe()
    if side.level >= 4:
        yield side.join("A", protocols=(("range", b"r"), ("sticky", b"s")))
        yield side.describe()
    yield side.heartbeat("A", 1)
    yield side.sync("A", 1, {"A": b"everything"})
    yield side.describe(operations=side.level >= 3)
    yield side.heartbeat("A", 1)
    yield side.sync("A", 1)
    yield side.leave("A")
    yield side.describe()
    yield side.heartbeat("A", 1)
    yield side.leave("A")


@story()
def a_second_member_makes_the_first_join_again(side):
    side.stable("A")
    side.enter("B")
    side.rebalancing("A", 1)
    yield side.describe()
    yield side.sync("A", 1)
    yield side.heartbeat("A", 0)
    side.send_join("A")
    yield side.joined("A")
    yield side.joined("B")
    yield side.describe()
    side.send_sync("B", 2)
    side.send_sync("A", 2, {"A": b"a", "B": b"b"})
    yield side.synced("A")
    yield side.synced("B")
    yield side.describe()


@story()
def the_vote(side):
    side.enter("A", protocols=(("one", b"a1"), ("two", b"a2"), ("three", b"a3")))
    yield side.joined("A")
    yield side.sync("A", 1, {"A": b""})
    side.enter("B", protocols=(("three", b"b3"), ("two", b"b2")))
    side.rebalancing("A", 1)
    side.send_join("A", protocols=(("one", b"a1"), ("three", b"a3"), ("two", b"a2")))
    yield side.joined("A")
    yield side.joined("B")
    yield side.sync("A", 2, {"A": b"", "B": b""})
    yield side.describe()


@story()
def members_of_a_stable_group_join_again(side):
    side.stable("A", "B")
    yield side.join("B")  # with nothing new
    yield side.describe()
    side.send_join("B", protocols=(("range", subscription("something new")),))
    side.rebalancing("A", 2)
    side.send_join("A")
    yield side.joined("A")
    yield side.joined("B")
    yield side.join("B", protocols=(("range", subscription("something new")),))  # its answer may have been lost
    yield side.join("A")
    yield side.sync("A", 3, {"A": b"a3", "B": b"b3"})
    yield side.sync("B", 3)
    side.send_join("A")  # a leader may have something new to assign
    side.rebalancing("B", 3)
    yield side.describe()
    side.send_join("B", protocols=(("range", subscription("something new")),))
    yield side.joined("A")
    yield side.joined("B")


@story()
def something_new_while_the_leader_assigns(side):
    side.stable("A", "B")
    side.send_join("A")
    side.rebalancing("B", 2)
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")
    side.send_sync("B", 3)
    side.send_join("A", protocols=(("range", subscription("something new")),))
    yield side.synced("B")
    yield side.describe()
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")


@story()
def a_full_group(side):
    side.stable("A", "B", "C")
    for _ in range(2):
        yield side.join("D")
    yield side.describe()
    yield side.join("C")
    side.send_join("A")
    side.rebalancing("B", 3)
    side.send_join("B")
    side.send_join("C")
    for name in "ABC":
        yield side.joined(name)


@story(range(4, 11))
def pending_members(side):
    yield side.join("A")
    side.known(side.group)
    yield side.describe()
    yield side.join("B")
    yield side.listed()
    yield side.heartbeat("A", 0)
    yield side.heartbeat("A", -1)
    yield side.sync("A", 0)
    yield side.commit((side.topic(), 0, 1), who="A", generation=0)
    yield side.delete()
    yield side.leave("B")
    yield side.leave("B")
    side.send_join("A")
    yield side.joined("A")
    yield side.delete()


@story(range(4, 11))
def a_pending_member_is_waited_for(side):
    side.stable("A")
    yield side.join("B")
    yield side.heartbeat("A", 1)
    yield side.describe()
    side.send_join("A")  # the leader's wish for a rebalance has to wait for the one that only has its id
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")


@story(range(4, 11))
def a_pending_member_that_leaves_is_not_waited_for(side):
    side.stable("A")
    yield side.join("B")
    side.send_join("A")
    side.rebalancing("A", 1)
    yield side.leave("B")
    yield side.joined("A")


# --- syncing ---


@story()
def syncs_that_are_refused(side):
    yield side.of(ApiKey.SYNC_GROUP, requests.sync("", "m", 0))
    yield side.of(ApiKey.SYNC_GROUP, requests.sync(side.group, "m", 0))
    side.stable("A")
    for fields in (
        {"member": "nobody"},
        {"member": ""},
        {"generation": 0},
        {"generation": 2},
        {"generation": -1},
        {"member": "nobody", "generation": 7},
    ):
        fields = {"member": side.ids["A"], "generation": 1, **fields}
        yield side.of(ApiKey.SYNC_GROUP, requests.sync(side.group, **fields))


@story(range(5, 11))
def syncs_that_name_a_protocol(side):
    side.stable("A")
    for fields in (
        {"protocol_type": "consumer", "protocol_name": "range"},
        {"protocol_type": "connect", "protocol_name": "range"},
        {"protocol_type": "consumer", "protocol_name": "sticky"},
        {"protocol_type": "consumer"},
        {"protocol_name": "range"},
        {"protocol_type": "", "protocol_name": ""},
    ):
        yield side.sync("A", 1, **fields)


@story()
def an_assignment_with_a_stranger_and_without_a_member(side):
    side.enter("A")
    yield side.joined("A")
    side.ids["B"] = "a stranger"
    yield side.sync("A", 1, {"B": b"lost"})
    yield side.describe()


# --- staying ---


@story()
def heartbeats_that_are_refused(side):
    yield side.of(ApiKey.HEARTBEAT, requests.heartbeat("", "m", 0))
    yield side.of(ApiKey.HEARTBEAT, requests.heartbeat(side.group, "m", 0))
    side.stable("A")
    for member, generation in (("nobody", 1), ("", 1), (side.ids["A"], 0), (side.ids["A"], 2), ("nobody", -1)):
        yield side.of(ApiKey.HEARTBEAT, requests.heartbeat(side.group, member, generation))


# --- leaving ---


@story()
def members_leave_one_after_the_other(side):
    side.stable("A", "B")
    yield side.leave("B")
    yield side.describe()
    yield side.heartbeat("A", 2)
    yield side.leave("A")
    yield side.describe()
    side.ids.clear()
    side.enter("C")
    yield side.joined("C")


@story()
def leaves_that_are_refused(side):
    version = side.version(ApiKey.LEAVE_GROUP)
    yield side.of(ApiKey.LEAVE_GROUP, requests.leave(version, "", "m"))
    yield side.of(ApiKey.LEAVE_GROUP, requests.leave(version, side.group, "m"))
    side.stable("A")
    yield side.leave("nobody")
    yield side.leave("")
    yield side.describe()


@story(range(3, 11))
def several_leave_at_once(side):
    yield side.leave("nobody", "nobody else")
    side.stable("A", "B", "C")
    yield side.leave()
    yield side.leave("B", "nobody", "C", "B")
    side.send_join("A")
    yield side.joined("A")
    yield side.leave("A", "A")
    yield side.describe()


@story()
def whoever_leaves_last_completes_the_rebalance(side):
    side.stable("A", "B", "C")
    side.send_join("A")
    side.rebalancing("B", 3)
    side.send_join("C")
    yield side.leave("B")
    yield side.joined("A")
    yield side.joined("C")


@story()
def a_leader_that_leaves_is_replaced(side):
    side.stable("A", "B")
    yield side.leave("A")
    side.send_join("B")
    yield side.joined("B")
    yield side.sync("B", 3, {"B": b"all"})
    yield side.describe()


@story()
def a_leader_that_leaves_while_others_wait_for_its_assignment(side):
    side.stable("A", "B")
    side.send_join("A")
    side.rebalancing("B", 2)
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")
    side.send_sync("B", 3)
    yield side.leave("A")
    yield side.synced("B")
    side.send_join("B")
    yield side.joined("B")


# --- static members ---


@story(STATIC_MEMBERS)
def a_static_leader_comes_back(side):
    side.stable("A", group_instance_id="a")
    yield side.describe()
    side.ids["old A"] = side.ids.pop("A")
    yield side.join("A", group_instance_id="a")
    yield side.describe()
    yield side.heartbeat("old A", 1, group_instance_id="a")
    yield side.heartbeat("old A", 1)
    yield side.sync("old A", 1, group_instance_id="a")
    yield side.heartbeat("A", 1, group_instance_id="a")
    yield side.sync("A", 1, group_instance_id="a")
    yield side.commit((side.topic(), 0, 1), who="old A", generation=1, group_instance_id="a")
    yield side.commit((side.topic(), 0, 1), who="A", generation=1, group_instance_id="a")
    yield side.leave((side.ids["old A"], "a"))
    yield side.leave((side.ids["A"], "b"))
    yield side.leave(("", "b"))
    yield side.leave(("", "a"))
    yield side.describe()


@story(STATIC_MEMBERS)
def a_static_follower_comes_back(side):
    side.enter("A", group_instance_id="a")
    yield side.joined("A")
    yield side.sync("A", 1, {"A": b"a"}, group_instance_id="a")
    side.enter("B", group_instance_id="b")
    side.rebalancing("A", 1, group_instance_id="a")
    side.send_join("A", group_instance_id="a")
    yield side.joined("A")
    yield side.joined("B")
    yield side.sync("A", 2, {"A": b"a", "B": b"b"}, group_instance_id="a")
    yield side.sync("B", 2, group_instance_id="b")
    side.ids["old B"] = side.ids.pop("B")
    yield side.join("B", group_instance_id="b")
    yield side.sync("B", 2, group_instance_id="b")
    yield side.heartbeat("A", 2, group_instance_id="a")
    # With a subscription that changes what the group is assigned by, or only what is in it.
    del side.ids["B"]
    yield side.join("B", group_instance_id="b", protocols=(("range", subscription("something new")),))
    yield side.describe()


@story(STATIC_MEMBERS)
def a_static_member_comes_back_with_another_vote(side):
    protocols = (("range", b"r"), ("sticky", b"s"))
    side.stable("A", group_instance_id="a", protocols=protocols)
    side.ids["old A"] = side.ids.pop("A")
    yield side.join("A", group_instance_id="a", protocols=protocols[::-1])
    yield side.describe()


@story(STATIC_MEMBERS)
def a_static_member_comes_back_while_it_waits(side):
    side.stable("A")
    side.send_join("B", group_instance_id="b")
    side.rebalancing("A", 1)
    side.send_join("B again", group_instance_id="b")
    yield side.answer("B", ApiKey.JOIN_GROUP)  # its id is known to nobody
    side.send_join("A")
    yield side.joined("A")
    yield side.joined("B again")
    side.send_sync("B again", 2, group_instance_id="b")
    side.send_join("B once more", group_instance_id="b")
    yield side.synced("B again")
    side.rebalancing("A", 2)
    side.send_join("A")
    yield side.joined("A")
    yield side.joined("B once more")


@story(STATIC_MEMBERS)
def a_static_member_joins_again_with_its_id(side):
    side.stable("A", group_instance_id="a")
    side.send_join("A", group_instance_id="a")
    yield side.joined("A")
    yield side.sync("A", 2, {"A": b"a"}, group_instance_id="a")
    yield side.join("A")  # without its instance id, as another kind of member
    yield side.describe()


# --- offsets ---


@story()
def a_consumer_without_a_group_commits(side):
    t = side.topic()
    yield side.fetch((t, [0, 1]))
    yield side.commit((t, 0, 5), (t, 1, 7), metadata="words", leader_epoch=3)
    yield side.commit((t, 2, 0), metadata=None)
    yield side.fetch((t, [0, 1, 2]))
    if side.level >= 2:
        yield side.fetch()
    yield side.describe()
    yield side.listed()
    yield side.commit((t, 0, -1), (t, 1, -5), leader_epoch=-5)
    yield side.fetch((t, [0, 1, 2]))
    yield side.delete()
    yield side.fetch((t, [0, 1, 2]))


@story()
def offsets_that_are_refused(side):
    t, unknown = side.topic(), side.unknown_topic()
    yield side.commit((unknown, 0, 5))
    yield side.commit((t, 0, 5), (t, 3, 5), (t, -1, 5), (unknown, 0, 5))
    yield side.commit((t, 0, 6), metadata="w" * 101)
    yield side.commit((t, 0, 6), (t, 3, 6), metadata="w" * 101)
    yield side.commit((t, 1, 6), metadata="\N{EURO SIGN}" * 50)
    yield side.commit((t, 2, 6), metadata="w" * 100)
    yield side.commit()
    yield side.fetch((t, [0, 1, 2, 3, -1]), (unknown, [0]))
    yield side.commit((t, 0, 1), group="")
    yield side.fetch_groups({"": [(t, [0])]})
    yield side.describe("")
    yield side.delete("")


@story()
def members_commit(side):
    t, unknown = side.topic(), side.unknown_topic()
    yield side.commit((t, 0, 1), member="nobody", generation=0)
    yield side.commit((t, 0, 1), member="nobody")
    yield side.describe()
    side.stable("A")
    yield side.commit((t, 0, 2), who="A", generation=1)
    for fields in (
        {"who": "A", "generation": 0},
        {"who": "A", "generation": 2},
        {"who": "A", "generation": -1},
        {"member": "nobody", "generation": 1},
        {"member": "nobody", "generation": -1},
        {"member": "", "generation": 1},
        {},
        {"who": "A", "generation": 0, "metadata": "w" * 101},
    ):
        yield side.commit((t, 0, 3), (unknown, 0, 3), **fields)
        yield side.commit((unknown, 0, 3), **fields)
        yield side.commit(**fields)
    yield side.fetch((t, [0]))
    yield side.leave("A")
    yield side.commit((t, 0, 4), who="A", generation=1)
    yield side.commit((t, 0, 4), who="A", generation=2)
    yield side.commit((t, 0, 4), member="nobody")
    yield side.commit((t, 0, 5))
    yield side.fetch((t, [0]))


@story(STATIC_MEMBERS)
def static_members_commit(side):
    t = side.topic()
    yield side.commit((t, 0, 1), group_instance_id="a")
    side.stable("A", group_instance_id="a")
    for fields in (
        {"who": "A", "group_instance_id": "b", "generation": 1},
        {"who": "A", "group_instance_id": "a", "generation": -1},
        {"member": "", "group_instance_id": "a", "generation": -1},
        {"member": "nobody", "group_instance_id": "a", "generation": 1},
        {"who": "A", "generation": 1},
    ):
        yield side.commit((t, 0, 3), **fields)


@story()
def members_commit_during_a_rebalance(side):
    t = side.topic()
    side.stable("A", "B")
    side.send_join("A")
    side.rebalancing("B", 2)
    yield side.commit((t, 0, 1), who="B", generation=2)
    yield side.commit((t, 0, 1), generation=-1)
    side.send_join("B")
    yield side.joined("A")
    yield side.joined("B")
    yield side.commit((t, 0, 2), who="B", generation=3)
    yield side.commit((t, 0, 2), who="B", generation=2)
    yield side.fetch((t, [0]))


@story(range(2, 5))
def a_client_says_how_long_its_offsets_are_kept(side):
    t = side.topic()
    yield side.commit((t, 0, 1), retention_time_ms=3_600_000)
    yield side.commit((t, 1, 1), retention_time_ms=0)
    yield side.commit((t, 2, 1), retention_time_ms=-5)
    yield side.fetch((t, [0, 1, 2]))


@story(range(8, 11))
def offsets_of_several_groups(side):
    t = side.topic()
    side.commit((t, 0, 5))
    side.commit((t, 1, 6), group=f"{side.group}-2")
    groups = {side.group: [(t, [0, 1])], f"{side.group}-2": None, f"{side.group}-unknown": None, "": [(t, [0])]}
    yield side.fetch_groups(groups)
    yield side.fetch_groups({})
    yield side.fetch_groups({side.group: []})
    yield side.fetch_groups({f"{side.group}-unknown": [(t, [0]), (side.unknown_topic(), [0, 1])]})


@story(range(7, 11))
def offsets_that_must_be_stable(side):
    t = side.topic()
    side.commit((t, 0, 5))
    yield side.fetch((t, [0, 1]), require_stable=True)
    yield side.fetch(require_stable=True)


@story(range(1, 8))
def offsets_of_nothing(side):
    yield side.fetch_groups({side.group: []})
    if side.level >= 2:
        yield side.fetch()
    yield side.fetch(("unknown", [0]), ("unknown", [0, 0]))


@story()
def offsets_of_a_deleted_topic(side):
    name = f"doomed-{side.level}"
    t = side.topic(name)
    yield side.commit((t, 0, 5))
    side.delete_topic(name)
    yield side.commit((t, 0, 6))


@story(range(1))
def offsets_are_deleted(side):
    side.topic()
    yield side.delete_offsets(("t", 0))
    yield side.delete_offsets(("t", 0), group="")
    yield side.delete_offsets(("unknown", 0))
    side.commit(("t", 0, 5), ("t", 1, 6))
    yield side.delete_offsets(("t", 0), ("t", 2), ("t", 3), ("unknown", 0))
    yield side.fetch(("t", [0, 1]))
    yield side.delete_offsets(("t", 1))
    yield side.describe()
    yield side.listed()
    yield side.delete_offsets(("t", 1))
    yield side.delete()


@story(range(1))
def offsets_of_a_group_with_members_are_deleted(side):
    side.topic("t")
    side.topic("other")
    side.stable("A", protocols=(("range", subscription("t")),))
    side.commit(("t", 0, 5), ("other", 0, 6), who="A", generation=1)
    yield side.delete_offsets(("t", 0), ("t", 1), ("other", 0), ("other", 1), ("unknown", 0))
    yield side.fetch(("t", [0]), ("other", [0]))
    side.send_join("A", protocols=(("range", subscription("other")),))
    yield side.joined("A")
    yield side.delete_offsets(("t", 0), ("other", 0))
    yield side.delete_offsets()


@story(range(1))
def offsets_of_other_groups_with_members_are_deleted(side):
    side.topic("t")
    side.stable("A", protocol_type="connect")
    side.commit(("t", 0, 5), who="A", generation=1)
    yield side.delete_offsets(("t", 0))
    yield side.leave("A")
    yield side.delete_offsets(("t", 0))


@story(range(1))
def offsets_of_consumers_with_a_subscription_that_is_none_are_deleted(side):
    side.topic("t")
    side.stable("A", protocols=(("range", b"\0"),))
    side.commit(("t", 0, 5), who="A", generation=1)
    yield side.delete_offsets(("t", 0))


# --- groups ---


@story(range(7))
def groups_are_described(side):
    side.stable("A")
    for operations in (False, True)[: 1 + (side.level >= 3)]:
        yield side.describe(side.group, "unknown", side.group, operations=operations)
    answer = side.describe("unknown")
    yield answer.groups[0].error_message
    answer = side.describe(side.group)
    yield answer.groups[0].error_message


@story(range(6))
def groups_are_listed(side):
    t = side.topic()
    side.stable("A")
    name = side.group
    for kind in ("simple", "connect", "empty"):
        side.group = f"{name}-{kind}"
        if kind == "simple":
            side.commit((t, 0, 5))
        elif kind == "connect":
            side.stable("B", protocol_type="connect")
        else:
            side.stable("C")
            side.leave("C")
    side.group = name
    yield side.listed()
    if side.level >= 4:
        for states in (["Stable"], ["stable"], ["Empty", "STABLE"], ["nonsense"], [""], ["Dead"], ["Assigning"]):
            yield side.listed(states)
    if side.level >= 5:
        for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"], ["classic", "nonsense"], [""]):
            yield side.listed(types=types)
        yield side.listed(["Stable"], ["classic"])


@story(range(3))
def groups_are_deleted(side):
    t = side.topic()
    side.stable("A")
    yield side.delete()
    yield side.delete(side.group, "unknown", side.group, "")
    yield side.leave("A")
    yield side.commit((t, 0, 1))
    yield side.delete()
    yield side.describe()
    yield side.delete()
    yield side.delete("unknown", "unknown")
    yield side.of(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=[]))


@story(range(3))
def a_group_is_deleted_while_it_rebalances(side):
    side.stable("A")
    side.enter("B")
    side.rebalancing("A", 1)
    yield side.delete()
    side.send_join("A")
    yield side.joined("A")
    yield side.delete()
    yield side.joined("B")


@pytest.mark.parametrize(("tell", "level"), STORIES)
def test_both_tell_the_same_story(brokers, tell, level):
    def scenario(side):
        side.begin(f"{tell.__name__}-{level}", level)
        yield from tell(side)

    brokers.play(scenario)

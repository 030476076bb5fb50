"""Finding the coordinator of a group, joining it, and getting an assignment."""

import pytest

from barnabas.client.requests import groups, lookup
from barnabas.client.requests.groups import subscription
from barnabas.protocol.api import ApiKey
from tests.integration.groups.stories import Stories, play
from tests.support.group_versions import STATIC_MEMBERS

pytestmark = pytest.mark.java

story = Stories()


# --- finding the coordinator ---


@story(range(7))
def the_coordinator_of_a_group(side):
    version = side.version(ApiKey.FIND_COORDINATOR)
    for keys in (["g"], [""], ["a", "b", "a"], []):
        if version >= 4 or len(keys) == 1:
            yield side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, *keys))


@story(range(1, 7))
def the_coordinator_of_something_unknown(side):
    version = side.version(ApiKey.FIND_COORDINATOR)
    for key_type in (3, -1, *((2,) if version < 6 else ())):
        yield side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, "k", key_type=key_type))
    if version >= 6:
        for key in ("", "g", "g:t:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
            yield side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, key, key_type=2))


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
            yield side.of(ApiKey.JOIN_GROUP, groups.join_group(**{**fields, "group": group}))
            if name in ("no protocols", "no protocol type"):
                side.known(group)
    yield side.listed()


@story()
def joins_that_are_refused_by_a_stable_group(side):
    side.stable("A")
    for fields in REFUSED.values():
        yield side.of(ApiKey.JOIN_GROUP, groups.join_group(**{"group": side.group, **fields}))
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
        yield side.of(ApiKey.JOIN_GROUP, groups.join_group(side.group, **fields))
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
    yield side.of(ApiKey.SYNC_GROUP, groups.sync_group("", "m", 0))
    yield side.of(ApiKey.SYNC_GROUP, groups.sync_group(side.group, "m", 0))
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
        yield side.of(ApiKey.SYNC_GROUP, groups.sync_group(side.group, **fields))


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


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)

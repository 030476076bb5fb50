"""Members that stay, leave and come back."""

import pytest

from barnabas.client.requests import groups
from barnabas.client.requests.groups import subscription
from barnabas.protocol.api import ApiKey
from tests.integration.groups.stories import Stories, play
from tests.support.group_versions import STATIC_MEMBERS

pytestmark = pytest.mark.java

story = Stories()


# --- staying ---


@story()
def heartbeats_that_are_refused(side):
    yield side.of(ApiKey.HEARTBEAT, groups.heartbeat("", "m", 0))
    yield side.of(ApiKey.HEARTBEAT, groups.heartbeat(side.group, "m", 0))
    side.stable("A")
    for member, generation in (("nobody", 1), ("", 1), (side.ids["A"], 0), (side.ids["A"], 2), ("nobody", -1)):
        yield side.of(ApiKey.HEARTBEAT, groups.heartbeat(side.group, member, generation))


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
    yield side.of(ApiKey.LEAVE_GROUP, groups.leave_group(version, "", "m"))
    yield side.of(ApiKey.LEAVE_GROUP, groups.leave_group(version, side.group, "m"))
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
    yield side.answer("B", ApiKey.JOIN_GROUP)  # its id is unknown
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


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)

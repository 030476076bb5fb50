"""Groups of the consumer protocol, told by their members' heartbeats."""

import pytest

from tests.integration.groups.stories import Stories, play
from tests.support.polling import pause

pytestmark = pytest.mark.java

story = Stories()
BOTH = range(2)  # versions of ConsumerGroupHeartbeat and ConsumerGroupDescribe
ALL = {"t": [0, 1, 2]}


def partitions(answer):
    return answer.assignment.topic_partitions[0].partitions


@story(BOTH)
def one_member(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"])
    yield side.described(operations=True)
    yield side.beat("A", 3)
    yield side.beat("A", 2, owned=ALL)
    yield side.beat("A", 2, owned=ALL, topics=["t"], rebalance_timeout_ms=60_000)
    yield side.listed()
    yield side.describe()
    yield side.beat("A", -1)
    yield side.described()
    yield side.beat("A", -1)
    yield side.beat("A", 3)
    yield side.delete()
    yield side.described()


@story(BOTH)
def a_partition_moves(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"])
    yield side.beat("B", 0, topics=["t"])
    yield side.described()
    asked = side.beat("A", 2, owned=ALL)
    yield asked
    yield side.described()
    yield side.beat("A", 2, owned=ALL)
    yield side.beat("B", 3, owned={})
    yield side.beat("A", 2, owned={"t": partitions(asked)})
    yield side.beat("B", 3)
    yield side.described()
    yield side.beat("C", 0, topics=["t"])
    yield side.beat("D", 0, topics=["t"])
    yield side.beat("B", -1)
    yield side.beat("A", 3, owned={"t": partitions(asked)})
    yield side.described()
    yield side.delete()


@story(BOTH)
def epochs(side):
    side.assignable()
    side.assignable("u")
    yield side.beat("A", 3)
    yield side.beat("A", 0, topics=["t"])
    yield side.beat("A", 4)
    yield side.beat("A", 0, topics=["t"])
    yield side.beat("B", 4)
    yield side.beat("B", -1)
    yield side.beat("B", 0, topics=["u"])
    yield side.beat("A", 2, owned=ALL)
    yield side.beat("A", 3)
    yield side.beat("A", 2, owned={"u": [0]})
    yield side.beat("A", 2, owned={"t": [0]})
    yield side.beat("A", 2, owned={})
    yield side.beat("A", 0, topics=["t"])
    yield side.described()


@story(BOTH)
def static_members(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"], instance_id="i")
    yield side.beat("B", 0, topics=["t"])
    kept = side.beat("A", 2, owned=ALL, instance_id="i")
    yield kept
    yield side.beat("A", 2, owned={"t": partitions(kept)}, instance_id="i")
    yield side.beat("B", 3, owned={})
    yield side.beat("C", 0, topics=["t"], instance_id="i")
    yield side.beat("C", 3, instance_id="i")
    yield side.beat("C", -2, instance_id="i")
    yield side.beat("A", -2, instance_id="i")
    yield side.described()
    yield side.beat("A", 3, instance_id="i")
    yield side.beat("C", 0, topics=["t"], instance_id="i")
    yield side.described()
    yield side.beat("A", 3, instance_id="i")
    yield side.beat("A", -1, instance_id="i")
    yield side.beat("A", -1, instance_id="j")
    yield side.beat("C", -2, instance_id="i")
    yield side.beat("D", 0, topics=[], instance_id="i")
    yield side.described()
    yield side.beat("D", 4, owned={}, instance_id="i")
    yield side.beat("D", -1, instance_id="i")
    yield side.described()


@story(BOTH)
def subscriptions(side):
    side.assignable()
    side.assignable("u")
    yield side.beat("A", 0, topics=[])
    yield side.beat("A", 1, topics=["t", "u", "nowhere"], owned={})
    yield side.described()
    yield side.beat("A", 2, topics=["u"])
    yield side.described()
    yield side.beat("A", 2, topics=["u"], owned={"u": [0, 1, 2]})
    yield side.beat("A", 3, topics=["t"], owned={"u": [0, 1, 2]})
    yield side.beat("A", 3, owned={})
    yield side.beat("A", 4, topics=["t", "t"], owned=ALL, server_assignor="range")
    yield side.described()
    yield side.beat("B", 0, topics=["t"], server_assignor="uniform", rack_id="r")
    yield side.beat("C", 0, topics=["u"], server_assignor="uniform")
    yield side.described()


@story(BOTH)
def requests_that_are_wrong(side):
    side.assignable()
    right = {"topics": ["t"], "rebalance_timeout_ms": 60_000}
    yield side.beat("A", 0, **{**right, "member": ""} if side.level else right)
    yield side.beat("A", 0, **right, instance_id="")
    yield side.beat("A", 0, **right, rack_id="")
    yield side.beat("A", 0, topics=["t"], rebalance_timeout_ms=-1)
    yield side.beat("A", 0, **right, owned=ALL)
    yield side.beat("A", 0, rebalance_timeout_ms=1)
    yield side.beat("A", -2)
    yield side.beat("A", -3)
    yield side.beat("A", 0, **right, server_assignor="best")
    yield side.beat("A", 0, **right, server_assignor="")
    yield side.beat("A", 1, member="")
    yield side.beat("A", -1, member="")
    name, side.group = side.group, ""
    yield side.beat("A", 0, **right)
    side.group = name
    yield side.described("", "unknown")
    yield side.described("unknown", "unknown")


@story([0])
def the_broker_gives_an_id(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"], member="")
    yield side.beat("A", 3)


@story([1])
def patterns(side):
    side.assignable("pat-1")
    yield side.beat("A", 0, subscribed_topic_regex="pat-.*")
    while side.beat("A", 1).member_epoch == 1:
        pause()
    yield side.beat("A", 2, owned={})
    yield side.described()
    yield side.beat("B", 0, subscribed_topic_regex="pat-(")
    yield side.beat("B", 0, subscribed_topic_regex="pat-.*")
    yield side.described()
    yield side.beat("B", 3, owned={}, subscribed_topic_regex="", topics=["pat-1"])
    yield side.described()
    yield side.beat("C", 0, subscribed_topic_regex="")
    yield side.described()


@story(range(8, 11))
def offsets(side):
    t, u = side.assignable(), side.assignable("u")
    yield side.commit((t, 0, 1), generation=1, member="A")
    yield side.beat("A", 0, topics=["t"])
    yield side.commit((t, 0, 5), (t, 1, 6), generation=2, member="A")
    yield side.commit((t, 0, 5), generation=3, member="A")
    yield side.commit((t, 0, 5), generation=0, member="A")
    yield side.commit((t, 0, 5), generation=-1, member="A")
    yield side.commit((t, 0, 5), generation=2, member="B")
    yield side.commit((t, 0, 5))
    yield side.beat("B", 0, topics=["u"])
    yield side.beat("A", 2, owned=ALL)
    yield side.commit((t, 0, 7), generation=2, member="A")
    yield side.commit((t, 1, 7), (u, 0, 7), generation=2, member="A")
    yield side.commit((u, 0, 7), generation=3, member="A")
    yield side.fetch()
    if side.level >= 9:
        for member, epoch in (("A", 3), ("A", 2), ("A", 4), ("A", -1), ("X", 3), ("", -1), ("", 3)):
            yield side.fetch_groups({side.group: None}, members={side.group: (member, epoch)})
    yield side.delete_offsets(("t", 0), ("u", 0), ("v", 0))
    yield side.beat("A", -1)
    yield side.beat("B", -1)
    yield side.commit((t, 0, 9))
    yield side.commit((t, 0, 9), generation=3, member="A")
    yield side.delete_offsets(("t", 0))
    yield side.delete()


@story(range(3, 6))
def members_are_removed_by_an_administrator(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"], instance_id="i")
    yield side.beat("B", 0, topics=["t"])
    yield side.beat("C", 0, topics=["t"])
    yield side.leave(("", "i"), ("X", "i"), ("", "j"), ("", None))
    yield side.described()
    yield side.leave("B", ("C", "i"))
    yield side.described()


@story(range(7, 10))
def an_empty_group_changes_its_kind(side):
    t = side.assignable()
    side.commit((t, 0, 5))
    yield side.listed()
    yield side.beat("A", 0, topics=["t"])
    yield side.listed()
    yield side.fetch()
    yield side.beat("A", -1)
    side.stable("B")
    yield side.listed()
    yield side.fetch()
    yield side.describe()
    yield side.described()
    yield side.leave("B")
    yield side.beat("C", 0, topics=["t"])
    yield side.listed()
    yield side.heartbeat("C", 1)
    yield side.describe()


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)

"""Groups that change between the classic protocol and the consumer protocol while they have members."""

import pytest

from barnabas.client.requests.groups import assignment
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription, TopicPartition, with_version
from tests.integration.groups.stories import Stories, play

pytestmark = pytest.mark.java

story = Stories()
LEVELS = (5, 9)
ALL = {"t": [0, 1, 2]}


def owning(*indexes, topics=("t",), names=("range",), version=1):
    """How a member of the classic protocol joins that owns partitions of the topic."""
    owned = [TopicPartition(topic="t", partitions=list(indexes))] if indexes else []
    subscription = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=owned)
    return [(name, with_version(subscription, version)) for name in names]


def classic(side, who, *indexes, **fields):
    """The only member of a stable classic group."""
    side.enter(who, protocols=owning(), **fields)
    answer = side.joined(who)
    side.sync(who, answer.generation_id, {who: assignment(("t", indexes))})


@story(LEVELS)
def up_and_down_again(side):
    t = side.assignable()
    classic(side, "A", 0, 1, 2)
    yield side.beat("B", 0, topics=["t"])
    yield side.listed()
    yield side.described()
    yield side.heartbeat("A", 1)
    yield side.heartbeat("A", 2)
    yield side.heartbeat("B", 2)
    yield side.commit((t, 0, 5), who="A", generation=1)
    yield side.commit((t, 0, 5), who="A", generation=7)
    yield side.sync("A", 1)
    asked = side.join("A", protocols=owning(0, 1, 2))
    yield asked
    yield side.described()
    yield side.sync("A", asked.generation_id)
    yield side.heartbeat("A", 1)
    yield side.beat("B", 2, owned={})
    kept = side.join("A", protocols=owning(0, 1))
    yield kept
    yield side.sync("A", 2, protocol_name="other") if side.level >= 5 else None
    yield side.sync("A", 2)
    yield side.heartbeat("A", 2)
    yield side.beat("B", 2, owned={})
    yield side.described()
    yield side.beat("B", -1)
    yield side.listed()
    yield side.heartbeat("A", 2)
    yield side.join("A", protocols=owning(0, 1))
    yield side.describe()


@story(LEVELS)
def classic_members_join_a_consumer_group(side):
    side.assignable()
    yield side.beat("A", 0, topics=["t"])
    yield side.join("B", protocols=owning())
    side.enter("B", protocols=owning())
    yield side.joined("B")
    yield side.sync("B", 3)
    yield side.heartbeat("B", 3)
    asked = side.beat("A", 2, owned=ALL)
    yield side.beat("A", 2, owned={"t": asked.assignment.topic_partitions[0].partitions})
    yield side.heartbeat("B", 3)
    yield side.join("B", protocols=owning())
    yield side.sync("B", 3)
    yield side.described()
    yield side.join("C", protocols=owning(names=["other"]))
    yield side.join("C", protocols=owning(names=["other", "range"]))
    yield side.join("C", protocols=owning(), protocol_type="connect")
    yield side.leave("B")
    yield side.described()
    yield side.beat("A", -1)
    yield side.listed()


@story([9])
def a_static_member_goes_up_and_down(side):
    side.assignable()
    classic(side, "A", 0, 1, 2, group_instance_id="i")
    yield side.beat("B", 0, topics=["t"], instance_id="i")
    yield side.listed()
    yield side.described()
    yield side.heartbeat("A", 1, group_instance_id="i")
    yield side.beat("B", 1, owned=ALL, instance_id="i")
    side.enter("C", protocols=owning(), group_instance_id="i")
    yield side.joined("C")
    yield side.listed()
    yield side.describe()


@story([9])
def what_cannot_be_upgraded(side):
    side.assignable()
    side.stable("A", protocol_type="connect")
    yield side.beat("B", 0, topics=["t"])
    yield side.listed()


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)

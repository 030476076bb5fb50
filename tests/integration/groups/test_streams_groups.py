"""Streams groups, told by their members' heartbeats."""

import pytest

from barnabas.client.requests import admin
from barnabas.client.requests.streams import streams_group_heartbeat, subtopology, topic_info, topology
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.streams_group_heartbeat import RequestEndpoint, TaskOffset
from tests.integration.groups.stories import Stories, play
from tests.support.polling import pause

pytestmark = pytest.mark.java

story = Stories()
ONE = [0]  # the only version of StreamsGroupHeartbeat and StreamsGroupDescribe
ALL = {"0": [0, 1, 2]}


def stateless(side):
    """One subtopology that reads three partitions."""
    return topology(subtopology("0", side.source("t")))


@story(ONE)
def one_member(side):
    simple = stateless(side)
    yield side.stream("A", 0, topology=simple)
    yield side.streams_described(operations=True)
    yield side.stream("A", 2)
    yield side.stream("A", 2, active=ALL)
    yield side.stream("A", 2, rack_id="r", tags=[("zone", "a"), ("cluster", "b")])
    yield side.stream("A", 3, process_id="other", rebalance_timeout_ms=1000)
    yield side.streams_described()
    yield side.listed()
    yield side.described()
    yield side.describe()
    yield side.stream("A", 0, topology=simple)
    yield side.stream("A", -1)
    yield side.streams_described()
    yield side.stream("A", -1)
    yield side.stream("A", 3)
    yield side.delete()
    yield side.streams_described()
    yield side.stream("A", 3)
    yield side.stream("A", -1)


@story(ONE)
def a_task_moves(side):
    simple = stateless(side)
    yield side.stream("A", 0, topology=simple)
    yield side.stream("B", 0, topology=simple)
    yield side.streams_described()
    asked = side.stream("A", 2, active=ALL)
    yield asked
    kept = {each.subtopology_id: each.partitions for each in asked.active_tasks}
    yield side.streams_described()
    yield side.stream("A", 2, active=ALL)
    yield side.stream("A", 2)
    yield side.stream("B", 3, active={})
    yield side.stream("A", 2, active=kept)
    yield side.stream("B", 3)
    yield side.streams_described()
    yield side.stream("C", 0, topology=simple)
    yield side.stream("D", 0, topology=simple)
    yield side.stream("A", 0, topology=simple)
    yield side.stream("B", -1)
    yield side.stream("A", 3, active=kept)
    yield side.streams_described()
    yield side.delete()


@story(ONE)
def threads_of_one_process(side):
    simple = stateless(side)
    yield side.stream("A", 0, topology=simple, process_id="p")
    yield side.stream("B", 0, topology=simple, process_id="p")
    yield side.stream("C", 0, topology=simple, process_id="q")
    yield side.stream("A", 2, active=ALL)
    yield side.stream("B", 3, active={})
    yield side.stream("A", 2, active={"0": [0]})
    yield side.stream("B", 3, active={})
    yield side.stream("C", 4, active={})
    yield side.streams_described()


@story(ONE)
def epochs(side):
    simple = stateless(side)
    yield side.stream("A", 3)
    yield side.stream("A", 0, topology=simple)
    yield side.stream("A", 4)
    yield side.stream("B", 4)
    yield side.stream("B", -1)
    yield side.stream("B", 0, topology=simple)
    yield side.stream("A", 2, active=ALL)
    yield side.stream("A", 2, active={"0": [0, 1]})
    yield side.stream("A", 3)
    yield side.stream("A", 2)
    yield side.stream("A", 2, active=ALL)
    yield side.stream("A", 2, active={"0": [0]})
    yield side.stream("A", 2, active={"1": [0]})
    yield side.stream("A", 2, active={})
    yield side.stream("A", 1, active={})
    yield side.stream("A", 3, active={"0": [0, 7]})
    yield side.stream("A", 3, active={"0": [-1]})
    yield side.stream("A", 3, active={"9": []})
    yield side.stream("A", 3, active={"0": [0, 0]}, standby={"0": [1]})
    yield side.streams_described()


@story(ONE)
def requests_that_are_wrong(side):
    simple = stateless(side)
    name = side.group
    for epoch, fields in (
        (0, {"instance_id": "i"}),
        (0, {"rack_id": " "}),
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"active": ALL}),
        (0, {"standby": ALL}),
        (0, {"warmup": ALL}),
        (0, {"active_tasks": None}),
        (0, {"standby_tasks": None}),
        (0, {"topology": None}),
        (0, {"task_offsets": []}),
        (0, {"task_end_offsets": [TaskOffset(subtopology_id="0", partition=0, offset=1)]}),
        (0, {"tags": [("a", "1"), ("a", "2")]}),
        (2, {}),
        (-1, {}),
        (-2, {}),
        (-3, {}),
        (2, {"topology": None, "active": {}, "warmup_tasks": None}),
        (2, {"topology": None, "standby": {}}),
    ):
        yield side.stream("A", epoch, **{"topology": simple, **fields})
    yield side.streamed(streams_group_heartbeat(name, "", 0, topology=simple))
    yield side.streamed(streams_group_heartbeat("", "A", 0, topology=simple))
    yield side.streamed(streams_group_heartbeat(name, "", -1))
    yield side.streams_described("", "unknown")
    yield side.streams_described("unknown", "unknown")
    yield side.listed()


@story(ONE)
def topologies_that_contradict_themselves(side):
    t = side.source("t")
    for wrong in (
        topology(),
        topology(subtopology("0")),
        topology(subtopology("0", t), subtopology("0", t)),
        topology(subtopology("0", t), epoch=-1),
        topology(subtopology("0", t, regexes=["t.*"])),
        topology(subtopology("0", t, changelogs=[topic_info("own", 3)])),
        topology(subtopology("0", t, changelogs=["__consumer_offsets"])),
        topology(subtopology("0", t, "a topic", sinks=["#"])),
        topology(subtopology("0", t), subtopology("1", repartition=["never-written"])),
        topology(subtopology("0", repartition=["r"], sinks=["s"]), subtopology("1", repartition=["s"], sinks=["r"])),
        topology(subtopology("0", t, copartitioned=[([1], [])])),
        topology(subtopology("0", t, copartitioned=[([0], [0])])),
        topology(subtopology("0", t, copartitioned=[([-1], [])])),
        topology(subtopology("0", t, sinks=["r"]), subtopology("1", repartition=[topic_info("r", -1)])),
        topology(subtopology("0", t, changelogs=["own", "own"])),
        topology(subtopology("0", t, changelogs=[topic_info("own", configs=[("a", "1"), ("a", "2")])])),
    ):
        side.group += "x"
        yield side.stream("A", 0, topology=wrong)
        yield side.streams_described()


@story(ONE)
def another_topology(side):
    t, u = side.source("t"), side.source("two", 2)
    first = topology(subtopology("0", t, u), epoch=3)
    yield side.stream("A", 0, topology=first)
    yield side.stream("B", 0, topology=topology(subtopology("0", u, t), epoch=3))
    yield side.stream("B", 0, topology=topology(subtopology("0", t, u), epoch=4))
    yield side.stream("B", 0, topology=topology(subtopology("0", t), epoch=2))
    yield side.streams_described()
    yield side.stream("B", 3)
    yield side.stream("C", 0, topology=first)
    yield side.stream("B", 0, topology=first)
    yield side.streams_described()


@story(ONE)
def source_topics_are_missing(side):
    missing = topology(subtopology("0", "not-yet", side.source("t"), "nor-this", "a", "b"))
    yield side.stream("A", 0, topology=missing)
    yield side.stream("A", 2)
    yield side.streams_described()
    yield side.listed(states=["NotReady"])
    one = topology(subtopology("0", "not-yet"))
    side.group += "-one"
    yield side.stream("A", 0, topology=one)
    side.source("not-yet", 2)
    while (answer := side.stream("A", 2, active={})).status:
        pause()
    yield answer
    yield side.streams_described()


@story(ONE)
def topics_with_the_wrong_numbers_of_partitions(side):
    t, u = side.source("t"), side.source("two", 2)
    for wrong in (
        topology(subtopology("0", t, u, copartitioned=[([0, 1], [])])),
        topology(
            subtopology("0", t, sinks=["r"]),
            subtopology("1", u, repartition=[topic_info("r", 4)], copartitioned=[([0], [0])]),
        ),
        topology(
            subtopology("0", t, sinks=["r", "s"]),
            subtopology("1", repartition=[topic_info("r", 4), topic_info("s", 5)], copartitioned=[([], [0, 1])]),
        ),
        topology(subtopology("0", t, changelogs=[u])),
    ):
        side.group += "x"
        yield side.stream("A", 0, topology=wrong)
        yield side.stream("A", 2)
        yield side.streams_described()


@story(ONE)
def own_topics_are_created(side):
    t = side.source("t")
    configs = [("cleanup.policy", "compact"), ("segment.bytes", "1048576")]
    stateful = topology(subtopology("0", t, changelogs=[topic_info("own-changelog", configs=configs)]))
    yield side.stream("A", 0, topology=stateful)
    yield side.ready("A", 2)
    yield side.streams_described()
    yield side.stream("A", 3)


@story(ONE)
def a_repartition_topic(side):
    t, u = side.source("t"), side.source("two", 2)
    joined = topology(
        subtopology("0", t, sinks=["own-repartition"]),
        subtopology("1", u, repartition=["own-repartition"], copartitioned=[([0], [0])]),
    )
    yield side.stream("A", 0, topology=joined)
    yield side.ready("A", 2)
    yield side.streams_described()
    yield side.stream("B", 0, topology=joined)
    yield side.streams_described()


@story(ONE)
def own_topics_that_cannot_be_created(side):
    bad = topology(subtopology("0", side.source("t"), changelogs=[topic_info("never", configs=[("no.such", "1")])]))
    side.stream("A", 0, topology=bad)
    while True:
        (status,) = side.stream("A", 2).status
        if "Creation failed" in status.status_detail:
            break
        pause()
    yield status.status_code
    yield status.status_detail.split(" (")[0]
    yield side.streams_described()


@story(ONE)
def standby_tasks(side):
    side.source("t")
    stateful = topology(subtopology("0", "t", changelogs=["copied"]))
    yield side.set_for_group("streams.num.standby.replicas", "1")
    while True:  # until the coordinator knows
        side.stream("A", 0, topology=stateful)
        side.ready("A", 2)
        side.stream("B", 0, topology=stateful)
        has_standby = any(m.target_assignment.standby_tasks for m in side.streams_described().groups[0].members)
        side.stream("A", -1)
        side.stream("B", -1)
        side.delete()
        if has_standby:
            break
        pause()
    yield side.stream("A", 0, topology=stateful)
    yield side.stream("B", 0, topology=stateful)
    yield side.stream("A", 2, active=ALL)
    kept = side.streams_described().groups[0].members
    yield side.streams_described()
    told = {m.member_id: {each.subtopology_id: each.partitions for each in m.assignment.active_tasks} for m in kept}
    yield side.stream("A", 2, active=told["A"])
    yield side.stream("B", 3, active={})
    yield side.stream("A", 3, active=told["A"])
    yield side.stream("B", 3)
    yield side.streams_described()
    yield side.stream("A", -1)
    yield side.stream("B", 3)
    yield side.streams_described()


@story(ONE)
def the_application_is_shut_down(side):
    simple = stateless(side)
    yield side.stream("A", 0, topology=simple)
    yield side.stream("B", 0, topology=simple, shutdown_application=True)
    yield side.stream("A", 2, shutdown_application=True)
    yield side.stream("B", -1, shutdown_application=True)
    yield side.stream("A", 2)
    yield side.stream("A", -1)
    yield side.stream("A", 0, topology=simple)


@story(ONE)
def endpoints(side):
    t, u = side.source("t"), side.source("two", 2)
    both = topology(subtopology("0", t, u))
    yield side.stream("A", 0, topology=both, user_endpoint=RequestEndpoint(host="a", port=1))
    yield side.stream("A", 2)
    yield side.stream("A", 2, endpoint_information_epoch=1)
    yield side.stream("B", 0, topology=both, user_endpoint=RequestEndpoint(host="b", port=65535))
    yield side.stream("A", 2, active=ALL)
    yield side.stream("A", 2, active={"0": [0, 1]}, endpoint_information_epoch=1)
    yield side.stream("B", 3, active={}, endpoint_information_epoch=1)
    yield side.stream("A", 3, endpoint_information_epoch=2)
    yield side.stream("A", 3, endpoint_information_epoch=-1)
    yield side.streams_described()


@story(ONE)
def the_first_assignment_waits(side):
    simple = stateless(side)
    yield side.set_for_group("streams.initial.rebalance.delay.ms", "5000")
    while not side.stream("A", 0, topology=simple).status:  # until the coordinator knows
        side.stream("A", -1)
        side.delete()
        pause()
    yield side.stream("B", 0, topology=simple)
    yield side.stream("A", 1)
    yield side.streams_described()
    while (answer := side.stream("A", 1, active={})).status:
        pause()
    yield answer
    yield side.stream("B", 1)
    yield side.streams_described()


@story(ONE)
def settings(side):
    wishes = {
        "streams.session.timeout.ms": ("45000", "44999", "60000", "60001", "soon"),
        "streams.heartbeat.interval.ms": ("5000", "4999", "15000", "15001"),
        "streams.num.standby.replicas": ("2", "3", "-1"),
        "streams.assignment.interval.ms": ("15000", "15001", "-1"),
        "streams.initial.rebalance.delay.ms": ("100000", "-1"),
        "streams.wish": ("1",),
    }
    for name, values in wishes.items():
        for value in values:
            yield side.set_for_group(name, value)
    asked = admin.describe_configs((admin.GROUP, side.group, list(wishes)))
    while True:  # until the last of them is known
        (told,) = side.ask(ApiKey.DESCRIBE_CONFIGS, asked, 4).results
        if "100000" in {each.value for each in told.configs}:
            break
        pause()
    yield told


@story(range(8, 11))
def offsets(side):
    side.source("t")
    side.source("two", 2)
    t, u = (side.name(name, by_id=side.level >= 10) for name in ("t", "two"))
    simple = topology(subtopology("0", "t"))
    yield side.commit((t, 0, 1), generation=1, member="A")
    yield side.stream("A", 0, topology=simple)
    yield side.commit((t, 0, 5), (t, 1, 6), generation=2, member="A")
    yield side.commit((t, 0, 5), generation=3, member="A")
    yield side.commit((t, 0, 5), generation=0, member="A")
    yield side.commit((t, 0, 5), generation=-1, member="A")
    yield side.commit((t, 0, 5), generation=2, member="B")
    yield side.commit((t, 0, 5))
    yield side.stream("B", 0, topology=simple)
    yield side.stream("A", 2, active={"0": [0, 1]})
    yield side.commit((t, 0, 7), generation=2, member="A")
    yield side.commit((t, 1, 7), (u, 0, 7), generation=2, member="A")
    yield side.commit((t, 2, 7), generation=2, member="A")
    yield side.commit((u, 0, 7), generation=3, member="A")
    yield side.fetch()
    if side.level >= 9:
        for member, epoch in (("A", 3), ("A", 2), ("A", 4), ("A", -1), ("X", 3), ("", -1), ("", 3)):
            yield side.fetch_groups({side.group: None}, members={side.group: (member, epoch)})
    yield side.delete_offsets(("t", 0), ("two", 0), ("v", 0))
    yield side.stream("A", -1)
    yield side.stream("B", -1)
    yield side.commit((t, 0, 9))
    yield side.commit((t, 0, 9), generation=3, member="A")
    yield side.delete_offsets(("t", 0))
    yield side.delete()


@story(range(3, 10))
def groups_of_other_kinds(side):
    side.source("t")
    simple = topology(subtopology("0", "t"))
    t = side.name("t", by_id=side.level >= 10)
    side.commit((t, 0, 5))
    yield side.listed()
    yield side.stream("A", 0, topology=simple)
    yield side.listed(types=["streams"])
    yield side.listed(types=["consumer"])
    yield side.listed(states=["Stable"])
    yield side.fetch()
    yield side.join("B")
    side.ids["B"] = "B"
    yield side.sync("B", 1)
    yield side.heartbeat("B", 1)
    yield side.leave("A")
    yield side.beat("B", 0, topics=["t"])
    yield side.delete()
    yield side.stream("A", -1)
    yield side.beat("B", 0, topics=["t"])
    yield side.sync("B", 1)
    yield side.heartbeat("B", 1)
    yield side.leave("A")
    del side.ids["B"]
    side.stable("B")
    yield side.listed()
    yield side.fetch()
    yield side.stream("A", 0, topology=simple)
    yield side.leave("B")
    yield side.stream("A", 0, topology=simple)
    yield side.listed()
    side.group += "-consumer"
    yield side.beat("C", 0, topics=["t"])
    yield side.stream("A", 0, topology=simple)
    yield side.stream("A", 2)
    yield side.stream("A", -1)
    yield side.streams_described()
    yield side.beat("C", -1)
    yield side.stream("A", 0, topology=simple)


@pytest.mark.parametrize(("tell", "level"), story.all)
def test_both_tell_the_same_story(brokers, tell, level):
    play(brokers, tell, level)

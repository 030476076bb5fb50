"""Groups of Kafka Streams: the broker knows the topology, creates its topics, and gives tasks to members."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import admin, groups
from barnabas.client.requests.streams import (
    Tasks,
    streams_group_describe,
    streams_group_heartbeat,
    subtopology,
    topic_info,
    topology,
)
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.streams_group_heartbeat import Topology

room = Room("streams-groups", "Streams groups")

KIP: Final = "KIP-1071"
NEEDS: Final = ("FindCoordinator", "StreamsGroupHeartbeat", "StreamsGroupDescribe")
FEATURES: Final = {"streams.version": 1}

STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS, MISSING_INTERNAL_TOPICS, SHUTDOWN = range(5)
ASSIGNMENT_DELAYED: Final = 5


class Member:
    """A member that does what it is told, and says so in its next heartbeat."""

    def __init__(self, probe: Probe, group: str, name: str) -> None:
        self.probe = probe
        self.group = group
        self.id = f"{group}-{name}"
        self.epoch = 0
        self.active: Tasks = {}
        probe.at_end(lambda: self.send(-1))

    def send(self, epoch: int, **fields: Any) -> Any:
        message = streams_group_heartbeat(self.group, self.id, epoch, **fields)
        return self.probe.ask_coordinator(self.group, ApiKey.STREAMS_GROUP_HEARTBEAT, message)

    def join(self, reads: Topology, **fields: Any) -> Any:
        return self._heard(self.send(0, topology=reads, **fields))

    def beat(self, **fields: Any) -> Any:
        return self._heard(self.send(self.epoch, active=self.active, **fields))

    def _heard(self, answer: Any) -> Any:
        self.probe.expect_error("the heartbeat", answer.error_code)
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.active = {each.subtopology_id: sorted(each.partitions) for each in answer.active_tasks}
        return answer

    def until_assigned(self) -> None:
        """A broker may wait for more members first, or for topics that it creates."""
        self.probe.until("tasks", self.beat, lambda _: bool(self.active))


def _group(probe: Probe) -> str:
    """A group whose first assignment does not wait, as soon as its coordinator knows that."""
    group = probe.group()
    probe.coordinator(group)
    if ApiKey.INCREMENTAL_ALTER_CONFIGS in probe.target.versions:
        setting = (admin.SET, "streams.initial.rebalance.delay.ms", "0")
        probe.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, admin.incremental_alter_configs((admin.GROUP, group, [setting])))
        reset = admin.incremental_alter_configs((admin.GROUP, group, [(admin.DELETE, setting[1], None)]))
        probe.at_end(lambda: probe.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, reset))
    return group


def _known(probe: Probe, partitions: int) -> str:
    """A topic that coordinators know: they may hear of it a little later than others."""
    topic = probe.topic(partitions)
    waits = Member(probe, probe.group(), "waits")
    reads = topology(subtopology("0", topic))
    probe.until("a topic to be known", lambda: waits.join(reads), lambda answer: not _has(answer, 1))
    waits.send(-1)
    return topic


def _codes(answer: Any) -> list[int]:
    return [each.status_code for each in answer.status or () if each.status_code != ASSIGNMENT_DELAYED]


def _has(answer: Any, code: int) -> bool:
    return code in _codes(answer)


def _described(probe: Probe, group: str) -> Any:
    (found,) = probe.ask_coordinator(group, ApiKey.STREAMS_GROUP_DESCRIBE, streams_group_describe(group)).groups
    probe.expect_error("StreamsGroupDescribe", found.error_code)
    return found


@room.check("first-has-all", KIP, *NEEDS, features=FEATURES)
def first_has_all(probe: Probe) -> None:
    """The only member gets a task for each partition that a subtopology reads, and is in the epoch of its group."""
    topic = _known(probe, 3)
    member = Member(probe, _group(probe), "a")
    member.join(topology(subtopology("0", topic)))
    member.until_assigned()
    probe.expect("its tasks", member.active, {"0": [0, 1, 2]})
    found = _described(probe, member.group)
    probe.expect("the state of the group", found.group_state, "Stable")
    probe.expect("the epochs", (found.group_epoch, found.assignment_epoch), (member.epoch, member.epoch))


@room.check("task-moves", KIP, *NEEDS, features=FEATURES)
def task_moves(probe: Probe) -> None:
    """A task is given to another member only when its former owner has said that it has let go of it."""
    topic = _known(probe, 2)
    reads = topology(subtopology("0", topic))
    group = _group(probe)
    first, second = Member(probe, group, "a"), Member(probe, group, "b")
    first.join(reads)
    first.until_assigned()
    second.join(reads)
    kept = probe.until(
        "a task to be taken away",
        lambda: first.send(first.epoch, active={"0": [0, 1]}),
        lambda answer: answer.active_tasks is not None,
    ).active_tasks
    probe.expect("how many are left", sum(len(each.partitions) for each in kept), 1)
    second.beat()
    probe.expect("what the other has meanwhile", second.active, {})
    first.active = {each.subtopology_id: each.partitions for each in kept}
    first.beat()
    second.until_assigned()
    probe.expect("what both have", sorted([*first.active["0"], *second.active["0"]]), [0, 1])


@room.check("own-topics-are-created", KIP, *NEEDS, "DescribeConfigs", features=FEATURES)
def own_topics_are_created(probe: Probe) -> None:
    """Missing changelog topics are reported, and created with a partition for each task and the settings asked for."""
    topic, changelog = _known(probe, 2), probe.name("-changelog")
    compacted = topic_info(changelog, configs=[("cleanup.policy", "compact")])
    member = Member(probe, _group(probe), "a")
    answer = member.join(topology(subtopology("0", topic, changelogs=[compacted])))
    probe.expect("the statuses", _codes(answer), [MISSING_INTERNAL_TOPICS])
    probe.await_topic(changelog, 2)
    described = probe.ask(ApiKey.DESCRIBE_CONFIGS, admin.describe_configs((admin.TOPIC, changelog, ["cleanup.policy"])))
    probe.expect("its cleanup.policy", [each.value for each in described.results[0].configs], ["compact"])
    member.until_assigned()
    probe.expect("the tasks", member.active, {"0": [0, 1]})


@room.check("source-topics-are-missing", KIP, *NEEDS, features=FEATURES)
def source_topics_are_missing(probe: Probe) -> None:
    """While a source topic does not exist, members are told so and get no tasks; the group is not ready."""
    member = Member(probe, _group(probe), "a")
    answer = member.join(topology(subtopology("0", probe.name("-missing"))))
    probe.expect("the statuses", _codes(answer), [MISSING_SOURCE_TOPICS])
    probe.expect("its tasks", member.active, {})
    probe.expect("the state of the group", _described(probe, member.group).group_state, "NotReady")


@room.check("not-copartitioned", KIP, *NEEDS, features=FEATURES)
def not_copartitioned(probe: Probe) -> None:
    """Topics that are to be copartitioned and have different numbers of partitions are reported."""
    reads = topology(subtopology("0", _known(probe, 1), _known(probe, 2), copartitioned=[([0, 1], [])]))
    answer = Member(probe, _group(probe), "a").join(reads)
    probe.expect("the statuses", _codes(answer), [INCORRECTLY_PARTITIONED_TOPICS])


@room.check("stale-topology", KIP, *NEEDS, features=FEATURES)
def stale_topology(probe: Probe) -> None:
    """A member with an older topology than its group is told so."""
    topic, group = _known(probe, 1), _group(probe)
    Member(probe, group, "a").join(topology(subtopology("0", topic), epoch=1))
    answer = Member(probe, group, "b").join(topology(subtopology("0", topic), epoch=0))
    probe.expect("the statuses", _codes(answer), [STALE_TOPOLOGY])


@room.check("another-topology", KIP, *NEEDS, features=FEATURES)
def another_topology(probe: Probe) -> None:
    """A member whose topology differs from that of its group in the same epoch is refused with INVALID_REQUEST."""
    topic, group = _known(probe, 1), _group(probe)
    Member(probe, group, "a").join(topology(subtopology("0", topic)))
    answer = Member(probe, group, "b").send(0, topology=topology(subtopology("1", topic)))
    probe.expect_error("the heartbeat", answer.error_code, ErrorCode.INVALID_REQUEST)


@room.check("contradictory-topology", KIP, *NEEDS, features=FEATURES)
def contradictory_topology(probe: Probe) -> None:
    """A topology that reads nothing, or whose repartition topics form a loop, gets STREAMS_INVALID_TOPOLOGY."""
    for wrong in (
        topology(subtopology("0")),
        topology(subtopology("0", repartition=["r"], sinks=["s"]), subtopology("1", repartition=["s"], sinks=["r"])),
        topology(subtopology("0", "__consumer_offsets")),
    ):
        answer = Member(probe, _group(probe), "a").send(0, topology=wrong)
        probe.expect_error("the heartbeat", answer.error_code, ErrorCode.STREAMS_INVALID_TOPOLOGY)


@room.check("epochs", KIP, *NEEDS, features=FEATURES)
def epochs(probe: Probe) -> None:
    """A heartbeat with an epoch that the member does not have gets FENCED_MEMBER_EPOCH, and may join again."""
    reads = topology(subtopology("0", _known(probe, 1)))
    member = Member(probe, _group(probe), "a")
    member.join(reads)
    for epoch in (member.epoch + 1, member.epoch + 100):
        answer = member.send(epoch, active={})
        probe.expect_error(f"epoch {epoch}", answer.error_code, ErrorCode.FENCED_MEMBER_EPOCH)
    member.join(reads)


@room.check("unknown-member", KIP, *NEEDS, features=FEATURES)
def unknown_member(probe: Probe) -> None:
    """Heartbeats of unknown members get UNKNOWN_MEMBER_ID, those to unknown groups GROUP_ID_NOT_FOUND."""
    member = Member(probe, _group(probe), "a")
    probe.expect_error("an unknown group", member.send(1).error_code, ErrorCode.GROUP_ID_NOT_FOUND)
    Member(probe, member.group, "b").join(topology(subtopology("0", _known(probe, 1))))
    for epoch in (1, -1):
        probe.expect_error("an unknown member", member.send(epoch).error_code, ErrorCode.UNKNOWN_MEMBER_ID)


@room.check("leaving", KIP, *NEEDS, features=FEATURES)
def leaving(probe: Probe) -> None:
    """A member that leaves is gone at once, and the group's epoch is raised."""
    member = Member(probe, _group(probe), "a")
    member.join(topology(subtopology("0", _known(probe, 1))))
    before = _described(probe, member.group).group_epoch
    answer = member.send(-1)
    probe.expect_error("the heartbeat", answer.error_code)
    probe.expect("the epoch in the answer", answer.member_epoch, -1)
    found = _described(probe, member.group)
    probe.expect("the group", (found.group_state, found.group_epoch, found.members), ("Empty", before + 1, []))


@room.check("shutdown", KIP, *NEEDS, features=FEATURES)
def shutdown(probe: Probe) -> None:
    """When a member asks to shut the application down, every member hears of it."""
    reads, group = topology(subtopology("0", _known(probe, 1))), _group(probe)
    first, second = Member(probe, group, "a"), Member(probe, group, "b")
    first.join(reads)
    probe.expect("the statuses of who asks", _codes(second.join(reads, shutdown_application=True)), [SHUTDOWN])
    probe.expect("the statuses of the other", _codes(first.beat()), [SHUTDOWN])


@room.check("commit", KIP, *NEEDS, "OffsetCommit 9+", features=FEATURES)
def commit(probe: Probe) -> None:
    """A member commits with its epoch; an epoch that it does not have yet gets STALE_MEMBER_EPOCH."""
    topic = _known(probe, 1)
    member = Member(probe, _group(probe), "a")
    member.join(topology(subtopology("0", topic)))
    member.until_assigned()
    version = probe.version(ApiKey.OFFSET_COMMIT)
    reference = probe.reference(topic, version >= 10)
    for epoch, error in ((member.epoch, ErrorCode.NONE), (member.epoch + 1, ErrorCode.STALE_MEMBER_EPOCH)):
        request = groups.offset_commit(member.group, (reference, 0, 5), member=member.id, generation=epoch)
        answer = probe.ask_coordinator(member.group, ApiKey.OFFSET_COMMIT, request, version)
        probe.expect_error(f"a commit in epoch {epoch}", probe.only(answer.topics, "partitions").error_code, error)


@room.check("listed", KIP, *NEEDS, "ListGroups 5+", features=FEATURES)
def listed(probe: Probe) -> None:
    """ListGroups has streams groups under their own type."""
    member = Member(probe, _group(probe), "a")
    member.join(topology(subtopology("0", _known(probe, 1))))
    for kind, expected in (("streams", ["streams"]), ("consumer", [])):
        request = ListGroupsRequest(states_filter=[], types_filter=[kind])
        found = probe.ask_coordinator(member.group, ApiKey.LIST_GROUPS, request).groups
        ours = [each.group_type.lower() for each in found if each.group_id == member.group]
        probe.expect(f"its type among those of type {kind}", ours, expected)


@room.check("other-protocols", KIP, *NEEDS, "ConsumerGroupHeartbeat", "JoinGroup", features=FEATURES)
def other_protocols(probe: Probe) -> None:
    """A streams group with members lets nobody in who speaks another protocol."""
    topic = _known(probe, 1)
    member = Member(probe, _group(probe), "a")
    member.join(topology(subtopology("0", topic)))
    consumer = groups.consumer_group_heartbeat(member.group, "c", 0, topics=[topic])
    answer = probe.ask_coordinator(member.group, ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer)
    probe.expect_error("ConsumerGroupHeartbeat", answer.error_code, ErrorCode.GROUP_ID_NOT_FOUND)
    classic = groups.join_group(member.group)
    answer = probe.ask_coordinator(member.group, ApiKey.JOIN_GROUP, classic)
    probe.expect_error("JoinGroup", answer.error_code, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

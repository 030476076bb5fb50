"""Members of a consumer group at a coordinator without a broker."""

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.group.harness import GROUP, Coordinator, FewTopics, topic_id

CLIENT = ClientInfo("c", "/127.0.0.1", 1)


def group_of(*topics, **settings):
    """A coordinator that knows these topics, given as (name, partitions)."""
    few = FewTopics()
    for name, partitions in topics:
        few.create(name, partitions)
    return Group(Coordinator(topics=few, **settings))


class Group:
    """The group as its members see it."""

    def __init__(self, coordinator):
        self.coordinator = coordinator
        self.epochs = {}
        self.owned = {}

    @property
    def state(self):
        return self.coordinator.group.state.value

    @property
    def group(self):
        return self.coordinator.group

    def send(self, member_id, epoch, *, version=1, group_id=GROUP, may_describe=lambda _: True, **fields):
        client = ClientInfo("c", "/127.0.0.1", version)
        response, decision = self.decide(member_id, epoch, client, group_id, may_describe, **fields)
        self.coordinator.carry_out(decision)
        if not response.error_code:
            self.epochs[member_id] = response.member_epoch
            if response.assignment is not None:
                self.owned[member_id] = _named(response.assignment)
        return response

    def decide(self, member_id, epoch, client=CLIENT, group_id=GROUP, may_describe=lambda _: True, **fields):
        """What a heartbeat leads to, which is for the test to carry out."""
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
        return self.coordinator.shard.consumers.heartbeat(request, client, may_describe)

    def join(self, member_id, *topics, **fields):
        asked = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], **fields}
        if "subscribed_topic_regex" not in fields:
            asked["subscribed_topic_names"] = list(topics)
        return self.send(member_id, 0, **asked)

    def beat(self, member_id, *, owned=None, **fields):
        """A heartbeat; with what it owns, if that is given: {topic: partitions}."""
        if owned is not None:
            fields["topic_partitions"] = [
                RequestTopicPartitions(topic_id=topic_id(name), partitions=indexes) for name, indexes in owned.items()
            ]
        return self.send(member_id, self.epochs[member_id], **fields)

    def settle(self, *members):
        """Heartbeats of members who let go of what they are told to, until nothing changes."""
        for _ in range(4):
            for member_id in members:
                self.beat(member_id, owned=self.owned.get(member_id, {}))

    def leave(self, member_id, epoch=-1, **fields):
        return self.send(member_id, epoch, **fields)

    def commit(self, member_id, epoch, *partitions, version=9, in_transaction=False):
        told = []
        offsets = [
            (TopicPartition(name, index), CommittedOffset(5, 0, "", 0, topic_id=topic_id(name)))
            for name, index in partitions
        ]
        by = Committer(member_id, None, epoch, version, in_transaction)
        self.coordinator.carry_out(self.coordinator.shard.commit(GROUP, by, offsets, told.append))
        return told[0]

    def advance(self, ms):
        self.coordinator.timers.advance(ms)

    def reloaded(self):
        other = Group(self.coordinator.reloaded())
        other.epochs, other.owned = dict(self.epochs), dict(self.owned)
        return other


def _named(assignment):
    return {each.topic_id.strip().decode(): each.partitions for each in assignment.topic_partitions}


def error(response):
    return ErrorCode(response.error_code)

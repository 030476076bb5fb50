"""Members of a share group at a coordinator without a broker."""

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.share.offsets import alteration
from barnabas.client.requests import share_groups
from barnabas.protocol.errors import ErrorCode
from tests.broker.group.harness import GROUP, Answer, Coordinator, FewTopics


def result_of(steps):
    """What a generator returns, with all of its steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def group_of(*topics, **settings):
    """A coordinator that knows these topics, given as (name, partitions)."""
    few = FewTopics()
    for name, partitions in topics:
        few.create(name, partitions)
    return Group(Coordinator(topics=few, **settings))


class Group:
    """The group as its members and its administrators see it."""

    def __init__(self, coordinator):
        self.coordinator = coordinator
        self.states = coordinator.states
        self.epochs = {}
        self.owned = {}

    @property
    def group(self):
        return self.coordinator.group

    def send(self, member_id, epoch, topics=None, **fields):
        request = share_groups.share_group_heartbeat(GROUP, member_id, epoch, topics, **fields)
        answer = Answer()
        client = ClientInfo("c", "/127.0.0.1", 1)
        self.coordinator.carry_out(self.coordinator.shard.shares.heartbeat_of(request, client, answer))
        response = answer.message
        if not response.error_code:
            self.epochs[member_id] = response.member_epoch
            if response.assignment is not None:
                self.owned[member_id] = {
                    each.topic_id.strip().decode(): each.partitions for each in response.assignment.topic_partitions
                }
        return response

    def join(self, member_id, *topics, **fields):
        return self.send(member_id, 0, list(topics), **fields)

    def beat(self, member_id, *topics, **fields):
        return self.send(member_id, self.epochs[member_id], list(topics) or None, **fields)

    def settle(self, *members):
        for _ in range(3):
            for member_id in members:
                self.beat(member_id)

    def leave(self, member_id):
        return self.send(member_id, -1)

    def alter(self, *offsets):
        answer = Answer()
        request = share_groups.alter_share_group_offsets(GROUP, *offsets)
        wanted = result_of(alteration(self.coordinator.topics, request.topics))
        self.coordinator.carry_out(self.coordinator.shard.shares.offsets.alter(GROUP, wanted, answer))
        return answer.message

    def forget(self, *topics):
        answer = Answer()
        request = share_groups.delete_share_group_offsets(GROUP, *topics)
        self.coordinator.carry_out(self.coordinator.shard.shares.offsets.delete(request, answer))
        return answer.message

    def delete(self):
        told = []
        self.coordinator.carry_out(self.coordinator.shard.delete_group(GROUP, told.append))
        return told[0]

    def advance(self, ms):
        self.coordinator.timers.advance(ms)

    def reloaded(self):
        other = Group(self.coordinator.reloaded())
        other.epochs, other.owned = dict(self.epochs), dict(self.owned)
        return other


def error(response):
    return ErrorCode(response.error_code)

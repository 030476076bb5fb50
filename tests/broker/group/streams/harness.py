"""Members of a streams group at a coordinator without a broker."""

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.client.requests.streams import streams_group_heartbeat, subtopology, topology
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.group.harness import GROUP, Coordinator, FewTopics

SIMPLE = topology(subtopology("0", "t"))


def group_of(*topics, reads=SIMPLE, **settings):
    """A coordinator that knows these topics, given as (name, partitions), and members that have this topology."""
    few = FewTopics()
    for name, partitions in topics:
        few.create(name, partitions)
    return Group(Coordinator(topics=few, **settings), reads)


class Group:
    """The group as its members see it. They do what they are told, and say so with the next heartbeat."""

    def __init__(self, coordinator, reads):
        self.coordinator = coordinator
        self.reads = reads
        self.epochs = {}
        self.active = {}
        self.missing = []

    @property
    def state(self):
        return self.coordinator.group.state.value

    @property
    def group(self):
        return self.coordinator.group

    def send(self, member_id, epoch, *, group_id=GROUP, **fields):
        request = streams_group_heartbeat(group_id, member_id, epoch, **fields)
        answered = self.coordinator.shard.streams.heartbeat(request, ClientInfo("c", "/127.0.0.1", 0))
        self.coordinator.carry_out(answered.decision)
        response, self.missing = answered.response, list(answered.missing)
        if not response.error_code:
            self.epochs[member_id] = response.member_epoch
            if response.active_tasks is not None:
                self.active[member_id] = told(response.active_tasks)
        return response

    def join(self, member_id, **fields):
        return self.send(member_id, 0, **{"topology": self.reads, **fields})

    def leave(self, member_id):
        return self.send(member_id, -1)

    def beat(self, member_id, **fields):
        """A heartbeat that says only this."""
        return self.send(member_id, self.epochs[member_id], **fields)

    def obey(self, member_id):
        """A heartbeat that says that the member has what it was told to have, and nothing else."""
        standby = self.group.members[member_id].assigned.standby
        return self.beat(member_id, active=self.active[member_id], standby=standby)

    def settle(self, *members):
        for _ in range(4):
            for member_id in members:
                self.obey(member_id)

    def create_topic(self, name, partitions):
        self.coordinator.topics.create(name, partitions)
        self.coordinator.shard.topics_changed([name], True)

    def commit(self, member_id, epoch, *partitions, version=9, in_transaction=False):
        heard = []
        offsets = [(TopicPartition(name, index), CommittedOffset(5, 0, "", 0)) for name, index in partitions]
        by = Committer(member_id, None, epoch, version, in_transaction)
        self.coordinator.carry_out(self.coordinator.shard.commit(GROUP, by, offsets, heard.append))
        return heard[0]

    def advance(self, ms):
        self.coordinator.timers.advance(ms)

    def reloaded(self):
        other = Group(self.coordinator.reloaded(), self.reads)
        other.epochs, other.active = dict(self.epochs), dict(self.active)
        return other


def told(tasks):
    return {each.subtopology_id: each.partitions for each in tasks}


def codes(response):
    return [each.status_code for each in response.status]

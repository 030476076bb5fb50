"""Share groups on three brokers: the leader of a partition and the share coordinator may be any of them, and move."""

import random

from barnabas import Barnabas
from barnabas.broker.share.key import SharePartitionKey
from barnabas.client.wire import Wire
from barnabas.errors import ControlFailed
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.share.test_kill_9 import Ledger, Reader
from tests.support.polling import pause
from tests.support.share_side import ShareSide

RECORDS = 60
ROUNDS = 6
MOVED = ("__share_group_state", "t")


class Cluster:
    def __init__(self, brokers):
        host, _, port = brokers.bootstrap_servers.partition(",")[0].partition(":")
        self._wire = Wire(host, int(port))

    def described(self):
        answer = self._wire.ask(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 10)
        return answer, answer.topics[0]

    @property
    def broker_ids(self):
        return sorted(broker.node_id for broker in self.described()[0].brokers)

    @property
    def place(self):
        return self.described()[1].topic_id, 0

    def side_of_leader(self):
        """The broker that leads the topic's partition now."""
        answer, topic = self.described()
        leader = topic.partitions[0].leader_id
        (port,) = (broker.port for broker in answer.brokers if broker.node_id == leader)
        side = ShareSide(port)
        side.group = "g"
        return leader, side


def test_leaders_and_coordinators_move():
    made_up = random.Random(7)
    ledger = Ledger()
    with Barnabas({"share.coordinator.state.topic.num.partitions": "1"}, brokers=3, journal=False) as brokers:
        brokers.create_topic("t", replication_factor=3)
        cluster = Cluster(brokers)
        place = cluster.place
        _, side = cluster.side_of_leader()
        _initialize(side, place)
        for number in range(ROUNDS):
            leader, side = cluster.side_of_leader()
            side.produce(place, *[6] * (RECORDS // 6))
            reader = Reader(side, f"m{number}", place)
            enough = len(ledger.done) + RECORDS // 2
            while len(ledger.done) < enough:
                reader.read(made_up, ledger)
            others = [broker_id for broker_id in cluster.broker_ids if broker_id != leader]
            _move(brokers, MOVED[number % 2], to=made_up.choice(others))
            side.begin("g")
            side.close()
        _, side = cluster.side_of_leader()
        reader = Reader(side, "last", place)
        while len(ledger.done) < ROUNDS * RECORDS:
            reader.read(made_up, ledger)
        assert ledger.done == set(range(ROUNDS * RECORDS))
        side.close()


def _move(brokers, topic, to):
    """Move a leader as soon as the other replica is in sync."""
    while True:
        try:
            return brokers.move_leader(topic, 0, to=to)
        except ControlFailed:
            pause()


def _initialize(side, place):
    """Have the coordinator, on whichever broker, keep the state of a share partition."""
    while True:
        found = side.find_coordinator(SharePartitionKey("g", *place).coordinator_key)
        if not found.error_code:
            coordinator = ShareSide(found.port)
            coordinator.group = "g"
            (result,) = coordinator.initialize(place, start_offset=0).results[0].partitions
            coordinator.close()
            if not result.error_code:
                return
        pause()

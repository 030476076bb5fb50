"""Exactly once on three brokers: the consume-transform-produce loops of tests/integration/exactly_once, while brokers,
controllers, coordinators and leaders fail and come back.
"""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.requests.groups import offset_fetch
from barnabas.client.requests.lookup import find_coordinator
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from tests.integration.cluster.torture.faults import PATIENCE, Faults
from tests.integration.cluster.torture.torture import make, seconds_of_torture, seed
from tests.integration.exactly_once.torture import (
    INPUT,
    JAVA,
    PARTITIONS,
    READ_COMMITTED,
    Feed,
    Torture,
    group_of,
    output_of,
    reckon,
    story_of,
)
from tests.support.cluster import Cluster, every_mix, not_yet

pytestmark = [
    pytest.mark.java,
    pytest.mark.timeout(seconds_of_torture(60) + 900),
    pytest.mark.skipif(make() == "barnabas" and not_yet() is not None, reason=str(not_yet())),
    pytest.mark.skipif(not every_mix(), reason="BARNABAS_ALL_MIXES=1 runs it"),
]

LIBRARIES = ["kafka-python", "confluent-kafka", "aiokafka", JAVA]


class OnThreeBrokers(Torture):
    """The same torture, which asks the broker that can answer instead of the only one."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        super().__init__(cluster.brokers[0], cluster.bootstrap, LIBRARIES, chance, drain_seconds=300)  # type: ignore[arg-type]
        self.cluster = cluster

    def create_topics(self) -> None:
        names = (INPUT, *map(output_of, self.libraries))
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for each in admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in names]).values():
            each.result(60)
        self.cluster.await_whole()

    def supervise(self) -> None:
        self.cluster.start_those_that_ended()
        super().supervise()

    def committed_records(self, library: str) -> int:
        group = group_of(library)
        request = offset_fetch(8, {group: [(INPUT, list(range(PARTITIONS)))]}, require_stable=True)
        try:
            with Wire("127.0.0.1", self.cluster.brokers[0].port) as wire:
                (found,) = wire.ask(ApiKey.FIND_COORDINATOR, find_coordinator(4, group), 4).coordinators
            if found.error_code:
                return 0
            with Wire(found.host, found.port) as wire:
                (answer,) = wire.ask(ApiKey.OFFSET_FETCH, request, 8).groups
        except (OSError, ProtocolError):
            return 0
        if answer.error_code:
            return 0
        return sum(max(0, each.committed_offset) for topic in answer.topics for each in topic.partitions)

    def wait_until_stable(self, topic: str) -> dict[int, int]:
        deadline = time.monotonic() + PATIENCE
        while True:
            ends: list[dict[int, int]] = [{}, {}]
            for index in range(PARTITIONS):
                leader = self.cluster.leader(topic, index)
                assert leader is not None
                with Wire("127.0.0.1", leader.port) as wire:
                    for found, isolation in zip(ends, (0, READ_COMMITTED), strict=True):
                        request = list_offsets((topic, index, LATEST), isolation_level=isolation)
                        (answer,) = wire.ask(ApiKey.LIST_OFFSETS, request, 7).topics[0].partitions
                        found[index] = answer.offset
            if ends[0] == ends[1]:
                return ends[0]
            if time.monotonic() > deadline:
                raise AssertionError(f"{topic}: a transaction stays open: {ends}")
            time.sleep(0.2)


def test_exactly_once_through_the_faults_of_a_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_HANGS_AFTER", "40")  # for the workers: a new leader takes a session's time to be found
    number = seed()
    with capsys.disabled():
        print(f"\nBARNABAS_SEED={number}, brokers: {make()}")
    chance = random.Random(number)
    with Cluster([make()] * 3) as cluster:
        torture = OnThreeBrokers(cluster, chance)
        torture.create_topics()
        feed = Feed(torture.bootstrap)
        faults = Faults(cluster, chance, INPUT, PARTITIONS)
        of_workers = {name: fault for name, fault in torture.faults.items() if name != "the broker killed"}
        try:
            with torture.running():
                torture.torment(seconds_of_torture(60), {**of_workers, **faults.all}, pause=(0.5, 2))
                cluster.network.heal()
                cluster.start_those_that_ended()
                cluster.await_whole(2 * PATIENCE)
                reckon(torture, feed)
        finally:
            with capsys.disabled():
                print("\n".join([*faults.story, story_of(torture, feed)]))

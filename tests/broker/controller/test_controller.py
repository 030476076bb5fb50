"""Decisions carried out in a real registry."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.controller.controller import ChangeConfigs, Controller
from broker.controller.create_partitions import NewPartitions
from broker.controller.create_topics import NewTopic
from broker.controller.delete_topics import TopicReference
from broker.controller.elections import ElectionType
from broker.controller.images import BrokerImage, Endpoint
from broker.controller.reassignments import Reassignment
from broker.controller.view import ClusterView
from broker.registry.embedded import EmbeddedRegistry
from broker.registry.errors import Conflict, NoNode
from broker.registry.operations import Create
from protocol.errors import ErrorCode

BROKER = BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092),))


@dataclass
class Settings:
    num_partitions: int = 2
    default_replication_factor: int = 1
    delete_topic_enable: bool = True


class Broker:
    """A registry, the view of it and a controller, as a broker has them."""

    def __init__(self, path: Path) -> None:
        self.registry = EmbeddedRegistry.open(path)
        self.cluster = ClusterView(self.registry)
        self.settings = Settings()
        self.controller = Controller(
            self.registry,
            self.cluster,
            self.settings,
            validate_configs=lambda configs: {name: value or "" for name, value in configs.items()},
            random_bytes=os.urandom,
        )

    async def start(self) -> None:
        await self.controller.start(BROKER, new_cluster_id="a-new-cluster-of-22-ch", timestamp=1, clean=True)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = Broker(tmp_path / "registry.db")
    await broker.start()
    yield broker
    await broker.registry.close()


async def test_a_topics_life(broker: Broker) -> None:
    (created,) = await broker.controller.create_topics([NewTopic("t", configs={"retention.ms": "1"})])
    topic = broker.cluster.topics["t"]
    assert (created.error_code, created.topic_id) == (ErrorCode.NONE, topic.topic_id)
    assert len(topic.partitions) == 2

    (grown,) = await broker.controller.create_partitions([NewPartitions("t", 5)])
    assert grown.error_code is ErrorCode.NONE
    assert len(broker.cluster.topics["t"].partitions) == 5
    assert broker.cluster.topics["t"].topic_id == created.topic_id

    (deleted,) = await broker.controller.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.NONE
    assert not broker.cluster.topics


async def test_topics_survive_a_restart(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "registry.db")
    await broker.start()
    await broker.controller.create_topics([NewTopic("t", 3, configs={"a": "b"}), NewTopic("u")])
    topic, cluster_id = broker.cluster.topics["t"], broker.cluster.cluster_id
    await broker.registry.close()

    broker = Broker(tmp_path / "registry.db")
    await broker.start()
    again = broker.cluster.topics["t"]
    assert (again.topic_id, again.partitions, again.configs) == (topic.topic_id, topic.partitions, {"a": "b"})
    assert list(broker.cluster.topics) == ["t", "u"]
    assert broker.cluster.cluster_id == cluster_id
    assert broker.cluster.controller_epoch == 2
    await broker.registry.close()


async def test_validate_only_changes_nothing(broker: Broker) -> None:
    (result,) = await broker.controller.create_topics([NewTopic("t", 3)], validate_only=True)
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 3)
    assert not broker.cluster.topics

    await broker.controller.create_topics([NewTopic("t", 3)])
    (grown,) = await broker.controller.create_partitions([NewPartitions("t", 4)], validate_only=True)
    assert grown.error_code is ErrorCode.NONE
    assert len(broker.cluster.topics["t"].partitions) == 3


async def test_two_at_once_create_the_same_topic(broker: Broker) -> None:
    calls = (broker.controller.create_topics([NewTopic("t", n), NewTopic(f"own{n}")]) for n in (1, 2, 3))
    results = await asyncio.gather(*calls)
    assert [first.error_code for first, _ in results] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]
    assert set(broker.cluster.topics) == {"t", "own1", "own2", "own3"}
    assert len(broker.cluster.topics["t"].partitions) == 1


async def test_partitions_added_while_the_topic_is_deleted(broker: Broker) -> None:
    await broker.controller.create_topics([NewTopic("t", 1)])
    (grown,), (deleted,), (late,) = await asyncio.gather(
        broker.controller.create_partitions([NewPartitions("t", 2)]),
        broker.controller.delete_topics([TopicReference("t")]),
        broker.controller.create_partitions([NewPartitions("t", 3)]),
    )
    assert grown.error_code is ErrorCode.NONE
    # Both were decided before the partition was there. Whoever comes first now, nothing is left of the topic.
    assert deleted.error_code is ErrorCode.NONE
    assert late.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not broker.cluster.topics
    assert broker.registry.children("/brokers/topics") == []


async def test_a_tree_that_a_decision_does_not_know_of(broker: Broker) -> None:
    await broker.registry.multi([Create("/config/topics/t")])  # nothing else makes this node without its topic
    with pytest.raises(Conflict):
        await broker.controller.create_topics([NewTopic("t")])


async def test_settings_are_read_at_each_call(broker: Broker) -> None:
    broker.settings.num_partitions = 7
    (result,) = await broker.controller.create_topics([NewTopic("t")])
    assert result.num_partitions == 7
    broker.settings.delete_topic_enable = False
    (deleted,) = await broker.controller.delete_topics([TopicReference("t")])
    assert deleted.error_code is ErrorCode.TOPIC_DELETION_DISABLED


async def test_elections_and_reassignments_on_one_broker(broker: Broker) -> None:
    await broker.controller.create_topics([NewTopic("t")])
    (elected,) = await broker.controller.elect_leaders(ElectionType.PREFERRED, [("t", 0)])
    assert elected.error_code is ErrorCode.ELECTION_NOT_NEEDED
    (moved,) = await broker.controller.alter_partition_reassignments([Reassignment("t", 0, None)])
    assert moved.error_code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_settings_of_a_topic_are_altered(broker: Broker) -> None:
    await broker.controller.create_topics([NewTopic("t", configs={"a": "1", "b": "2"})])
    await broker.controller.alter_topic_configs("t", lambda present: {**present, "a": "3"})
    assert broker.cluster.topics["t"].configs == {"a": "3", "b": "2"}
    await broker.controller.alter_topic_configs("t", lambda present: {}, validate_only=True)
    assert broker.cluster.topics["t"].configs == {"a": "3", "b": "2"}
    with pytest.raises(NoNode):
        await broker.controller.alter_topic_configs("nosuch", lambda present: {})


async def test_no_alteration_is_lost_among_many(broker: Broker) -> None:
    def adding(name: str) -> ChangeConfigs:
        return lambda present: {**present, name: "set"}

    names = [f"n{number}" for number in range(20)]
    await asyncio.gather(*(broker.controller.alter_broker_configs(1, adding(name)) for name in names))
    assert set(broker.cluster.broker_configs(1)) == set(names)


async def test_settings_of_all_brokers(broker: Broker) -> None:
    await broker.controller.alter_broker_configs(None, lambda present: {"a": "1"})
    assert broker.cluster.broker_configs(None) == {"a": "1"}
    version = broker.registry.get("/config/brokers/<default>").version
    await broker.controller.alter_broker_configs(None, lambda present: dict(present))
    assert broker.registry.get("/config/brokers/<default>").version == version


async def test_what_cannot_be_altered_is_left(broker: Broker) -> None:
    def refuse(present: Mapping[str, str]) -> Mapping[str, str]:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await broker.controller.alter_broker_configs(1, refuse)
    assert broker.cluster.broker_configs(1) == {}

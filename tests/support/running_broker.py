"""A broker in the test's own process and loop, so that its clock and its file system can be the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock, SystemClock
from barnabas.broker.cluster.term import Term
from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.local_cluster import LocalCluster
from barnabas.broker.replica.partition import Partition
from barnabas.storage.filesystem import FileSystem

# A log for each of 50 partitions takes three times as long as everything else in a start.
FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}

_clusters: WeakKeyDictionary[Broker, LocalCluster] = WeakKeyDictionary()


def cluster_of(broker: Broker) -> LocalCluster:
    """The cluster of one that a running broker is."""
    return _clusters[broker]


@asynccontextmanager
async def running(
    folder: Path, *, clock: Clock | None = None, file_system: FileSystem | None = None, **settings: object
) -> AsyncIterator[Broker]:
    """A broker that serves on a free port; settings are given with underscores for Kafka's dots."""
    loop = asyncio.get_running_loop()
    names = {name.replace("_", "."): str(value) for name, value in settings.items()}
    listening = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
    config = BrokerConfig({**FEW_PARTITIONS, **listening, **names})
    cluster = local_cluster([config], clock or SystemClock(loop), file_system)
    await cluster.start()
    (broker,) = cluster.brokers
    _clusters[broker] = cluster
    try:
        yield broker
    finally:
        await cluster.stop()


def local_cluster(configs: Sequence[BrokerConfig], clock: Clock, file_system: FileSystem | None = None) -> LocalCluster:
    """Brokers of this process; they still have to be started."""
    loop = asyncio.get_running_loop()
    make_broker = partial(Broker, clock=clock, loop=loop, file_system=file_system)
    return LocalCluster(configs, make_broker, clock, loop)


def term_of(broker: Broker) -> Term:
    if broker.controller.term is None:
        raise RuntimeError("this broker is not the controller")
    return broker.controller.term


async def create_topic(broker: Broker, name: str = "t", partitions: int = 1, **configs: object) -> bytes:
    """Create a topic, its settings with underscores for dots, and return its id."""
    settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
    (result,) = await term_of(broker).create_topics([NewTopic(name, partitions, configs=settings)])
    if result.error_code:
        raise RuntimeError(f"{name}: {result.error_message}")
    return result.topic_id


async def delete_topic(broker: Broker, name: str = "t") -> None:
    await term_of(broker).delete_topics([TopicReference(name)])


def partition(broker: Broker, topic: str = "t", index: int = 0) -> Partition:
    found = broker.replicas.find(topic, index)
    if found is None:
        raise RuntimeError(f"{topic}-{index} is not there")
    return found

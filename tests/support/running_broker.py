"""A broker in the test's own process and loop, so that its clock and its file system can be the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from broker.broker import Broker
from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.controller.create_topics import NewTopic
from broker.controller.delete_topics import TopicReference
from broker.replica.partition import Partition
from storage.filesystem import FileSystem


@asynccontextmanager
async def running(
    folder: Path, *, clock: Clock | None = None, file_system: FileSystem | None = None, **settings: object
) -> AsyncIterator[Broker]:
    """A broker that serves on a free port; settings are given with underscores for Kafka's dots."""
    loop = asyncio.get_running_loop()
    names = {name.replace("_", "."): str(value) for name, value in settings.items()}
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder), **names})
    broker = Broker(config, clock or SystemClock(loop), loop, file_system=file_system)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def create_topic(broker: Broker, name: str = "t", partitions: int = 1, **configs: object) -> bytes:
    """Create a topic, its settings with underscores for dots, and give its id."""
    settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
    (result,) = await broker.create_topics([NewTopic(name, partitions, configs=settings)])
    if result.error_code:
        raise RuntimeError(f"{name}: {result.error_message}")
    return result.topic_id


async def delete_topic(broker: Broker, name: str = "t") -> None:
    await broker.controller.delete_topics([TopicReference(name)])


def partition(broker: Broker, topic: str = "t", index: int = 0) -> Partition:
    found = broker.replicas.find(topic, index)
    if found is None:
        raise RuntimeError(f"{topic}-{index} is not there")
    return found

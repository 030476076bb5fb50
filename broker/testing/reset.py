"""Emptying a broker while its clients stay connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller import znodes
from broker.controller.delete_topics import TopicReference, delete_topics
from broker.registry.operations import Delete

if TYPE_CHECKING:
    from broker.broker import Broker


async def reset(broker: Broker) -> None:
    """Delete all topics, and with the broker's own among them all groups, offsets and transactional ids; forget what
    was set at run-time. It is one transaction in the registry, so that nobody sees half of it.

    Whoever waits for something of it is answered as when a topic is deleted. Producer ids are not used again.
    """
    names = list(broker.cluster.topics)
    references = [TopicReference(name) for name in names]
    decision = delete_topics(broker.cluster, references, delete_topic_enable=True)
    configs = [Delete(znodes.broker_config_path(whose)) for whose in broker.cluster.configured_brokers()]
    operations = [*decision.operations, *configs]
    if operations:
        await broker.registry.multi(operations)
    broker.fetch_sessions.clear()
    for name in names:
        await broker.replicas.made(name)

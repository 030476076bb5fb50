"""Who leads a partition: what Produce and Fetch tell a client that asked another broker (KIP-951)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.broker.endpoints import BrokerEndpoint, endpoints_for
from barnabas.broker.replica.partition import NO_LEADER

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.server.connection import Connection


def current_leader(broker: Broker, topic: str | bytes, index: int) -> tuple[int, int] | None:
    """The leader and its epoch, as this broker's replica knows them, or else as the controller last reported them."""
    partition = broker.replicas.find(topic, index)
    if partition is not None:
        leader = partition.leader_id, partition.leader_epoch
    else:
        cluster = broker.cluster
        image = cluster.topic(topic) if isinstance(topic, str) else cluster.topic_by_id(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        leader = image.partitions[index].leader_id, image.partitions[index].leader_epoch
    return None if leader[0] == NO_LEADER else leader


def endpoints_of(broker: Broker, connection: Connection, leaders: Collection[int]) -> list[BrokerEndpoint]:
    return [endpoint for endpoint in endpoints_for(broker, connection) if endpoint.broker_id in leaders]

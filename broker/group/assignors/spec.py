"""What an assignor is told of a group and its topics, and how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from barnabas.broker.controller.uuids import uuid_to_string

Assignment = dict[str, Mapping[bytes, frozenset[int]]]
"""For each member, its partitions of each topic. Every member of the group has an entry; one that keeps what it owns
has the very same.

Hand a member's dict back as `owned` with its order unchanged: see `hash_order`.
"""


class PartitionAssignorError(Exception):
    """Kafka's PartitionAssignorException: there is no assignment for this group."""


class SubscriptionType(Enum):
    HOMOGENEOUS = "homogeneous"  # all members subscribe to the same topics
    HETEROGENEOUS = "heterogeneous"


class MemberSpec(NamedTuple):
    topic_ids: frozenset[bytes]  # what it subscribes to, as far as it exists
    instance_id: str | None  # of a static member
    rack_id: str | None  # Kafka 4.3 hands racks to its assignors, and none of them looks
    owned: Mapping[bytes, frozenset[int]]  # its current target assignment


@dataclass(frozen=True, slots=True)
class GroupSpec:
    members: Mapping[str, MemberSpec]  # the order matters where hashes collide: see `hash_order`
    subscription_type: SubscriptionType


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    count: int
    racks: tuple[frozenset[str], ...]  # those of each partition's replicas


def partition_count(topic_id: bytes, topics: Mapping[bytes, TopicPartitions]) -> int:
    if topic_id not in topics:
        name = uuid_to_string(topic_id)
        raise PartitionAssignorError(
            f"Members are subscribed to topic {name} which doesn't exist in the topic metadata."
        )
    return topics[topic_id].count


def known(
    owned: Mapping[bytes, frozenset[int]], topics: Mapping[bytes, TopicPartitions]
) -> Mapping[bytes, frozenset[int]]:
    """What a member owns without partitions that this broker does not know: no assignor expects them.

    The last coordinator, or a classic member that assigned them, may have heard of them earlier.
    """
    unknown = {
        topic_id
        for topic_id, indexes in owned.items()
        if topic_id in topics and indexes and not 0 <= min(indexes) <= max(indexes) < topics[topic_id].count
    }
    if not unknown:
        return owned
    return {
        topic_id: indexes if topic_id not in unknown else indexes.intersection(range(topics[topic_id].count))
        for topic_id, indexes in owned.items()
    }

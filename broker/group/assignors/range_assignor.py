"""The `range` assignor: of each topic, its subscribers get ranges of partitions, one after the other, in their order.

Kafka's RangeAssignor of 4.3. Static members come first, by their instance ids, and then the others by their member ids.
So topics with as many partitions and the same subscribers are divided alike, and can be joined. What members own does
not matter, and neither do racks.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.group.assignors.hash_order import utf16_units
from barnabas.broker.group.assignors.spec import (
    Assignment,
    GroupSpec,
    PartitionAssignorError,
    SubscriptionType,
    TopicPartitions,
)


def assign(spec: GroupSpec, topics: Mapping[bytes, TopicPartitions]) -> Assignment:
    member_ids = sorted(spec.members, key=lambda member_id: _rank(member_id, spec.members[member_id].instance_id))
    subscribers = _subscribers(spec, member_ids)
    if not topics.keys() >= subscribers.keys():
        raise PartitionAssignorError("Member is subscribed to a non-existent topic")
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in member_ids}
    for topic_id in sorted(subscribers):
        count = topics[topic_id].count
        share, extras = divmod(count, len(subscribers[topic_id]))
        end = 0
        for position, member_id in enumerate(subscribers[topic_id][:count]):  # the others get nothing
            start, end = end, end + share + (position < extras)
            assignment[member_id][topic_id] = frozenset(range(start, end))
    return {**assignment}


def _subscribers(spec: GroupSpec, member_ids: list[str]) -> Mapping[bytes, list[str]]:
    """The members that subscribe to each topic, in the order given."""
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        return {topic_id: member_ids for id in member_ids[:1] for topic_id in spec.members[id].topic_ids}
    subscribers: dict[bytes, list[str]] = {}
    for member_id in member_ids:
        for topic_id in spec.members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


def _rank(member_id: str, instance_id: str | None) -> tuple[bool, tuple[int, ...]]:
    return instance_id is None, utf16_units(member_id if instance_id is None else instance_id)

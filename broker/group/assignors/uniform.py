"""The `uniform` assignor: members get as many partitions as the others, and keep as many of theirs as that allows.

Kafka's UniformAssignor of 4.3. The result equals Kafka's down to the single partition, for keys in the order that
`hash_order` describes, and partitions added to a member's set in ascending order: a frozenset has no other.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.group.assignors import uniform_heterogeneous, uniform_homogeneous
from barnabas.broker.group.assignors.spec import Assignment, GroupSpec, SubscriptionType, TopicPartitions


def assign(spec: GroupSpec, topics: Mapping[bytes, TopicPartitions]) -> Assignment:
    if not any(member.topic_ids for member in spec.members.values()):
        return {member_id: {} for member_id in spec.members}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        return uniform_homogeneous.assign(spec, topics)
    return uniform_heterogeneous.assign(spec, topics)

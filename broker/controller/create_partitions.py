"""Adding partitions to topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.broker.controller import znodes
from barnabas.broker.controller.assignment import check_replicas, position_in_round, spread_replicas
from barnabas.broker.controller.create_topics import STATES_AT_ONCE, new_partition, partition_operations, racks_of
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.results import (
    MAX_PARTITIONS_PER_REQUEST,
    TOO_MANY_PARTITIONS,
    Decision,
    Refused,
    TopicResult,
    check_quota,
    duplicates,
)
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.quotas.mutations import Admit, everything
from barnabas.broker.registry.tree_operations import Operation, Set
from barnabas.protocol.errors import ErrorCode

MAX_TOPICS_PER_REQUEST: Final = 1000
TOO_MANY_TOPICS: Final = f"One request adds partitions to at most {MAX_TOPICS_PER_REQUEST} topics"


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The total number of partitions that a topic will have, and optionally the replicas of each new one."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_partitions(
    cluster: ClusterView, topics: Sequence[NewPartitions], admit: Admit = everything
) -> Decision[TopicResult]:
    if len(topics) > MAX_TOPICS_PER_REQUEST:
        error = ErrorCode.POLICY_VIOLATION
        return Decision([TopicResult(t.name, error_code=error, error_message=TOO_MANY_TOPICS) for t in topics])
    repeated = duplicates(topic.name for topic in topics)
    results = [
        TopicResult(name, error_code=ErrorCode.INVALID_REQUEST, error_message="The topic is named twice")
        for name in repeated
    ]
    operations: list[Operation] = []
    added = 0
    for topic in topics:
        if topic.name in repeated:
            continue
        try:
            image = cluster.topic(topic.name)
            if image is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if added + topic.count - len(image.partitions) > MAX_PARTITIONS_PER_REQUEST:
                raise Refused(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
            replicas = _replicas(cluster, image, topic)
            check_quota(admit, topic.name, len(replicas))
        except Refused as refusal:
            results.append(TopicResult(topic.name, error_code=refusal.error_code, error_message=refusal.message))
            continue
        results.append(TopicResult(topic.name, image.topic_id, num_partitions=topic.count))
        operations += _operations(cluster, image, replicas, max(0, STATES_AT_ONCE - added))
        added += len(replicas)
    return Decision(results, operations)


def _replicas(cluster: ClusterView, image: TopicImage, topic: NewPartitions) -> list[tuple[int, ...]]:
    present = len(image.partitions)
    if topic.count == present:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name} has {present} partition(s) and cannot be reduced to {topic.count}",
        )
    replication_factor = len(image.partitions[0].replica_nodes)
    if topic.assignments is not None:
        if len(topic.assignments) != topic.count - present:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"There are {topic.count - present} new partition(s), but {len(topic.assignments)} assignment(s)",
            )
        for replicas in topic.assignments:
            check_replicas(replicas, cluster.brokers, replication_factor)
        return [tuple(replicas) for replicas in topic.assignments]
    # Continue the round that the topic's first partition started.
    brokers = racks_of(cluster)
    start = position_in_round(brokers, image.partitions[0].replica_nodes[0])
    return spread_replicas(
        brokers, topic.count - present, replication_factor, start=start, shift=start, first_partition=present
    )


def _operations(
    cluster: ClusterView, topic: TopicImage, replicas: Sequence[tuple[int, ...]], room: int
) -> list[Operation]:
    """The operations that add partitions, with the states of no more than `room`."""
    present = len(topic.partitions)
    partitions = [new_partition(present + position, brokers) for position, brokers in enumerate(replicas)]
    assignment = znodes.write_topic(topic.topic_id, [*topic.partitions, *partitions])
    return [
        *partition_operations(cluster, topic.name, partitions[:room]),
        Set(znodes.topic_path(topic.name), assignment, topic.version),
    ]

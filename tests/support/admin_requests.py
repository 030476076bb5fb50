"""Requests about topics and settings, in one line each."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    incremental_alter_configs,
    list_config_resources,
    list_partition_reassignments,
)
from protocol.schema import ZERO_UUID

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

TIMEOUT_MS = 20_000

# A topic, and which of its partitions.
Partitions = tuple[str, Sequence[int]]


def new_topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> create_topics.CreatableTopic:
    """With assignments (a partition and its replicas), the two numbers are usually -1."""
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(
    *topics: create_topics.CreatableTopic, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS
) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def delete(*topics: str | bytes | None, timeout_ms: int = TIMEOUT_MS) -> delete_topics.DeleteTopicsRequest:
    """Topics go by their names or ids; None is one that has neither."""
    names = [topic if isinstance(topic, str) else None for topic in topics]
    ids = [topic if isinstance(topic, bytes) else ZERO_UUID for topic in topics]
    return delete_both(*zip(names, ids, strict=True), timeout_ms=timeout_ms)


def delete_both(*topics: tuple[str | None, bytes], timeout_ms: int = TIMEOUT_MS) -> delete_topics.DeleteTopicsRequest:
    """Topics by their names and ids; versions that know no ids have the names."""
    return delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics],
        topic_names=[name for name, _ in topics if name is not None],
        timeout_ms=timeout_ms,
    )


def grow(
    *topics: tuple[str, int, Sequence[Sequence[int]] | None],
    validate_only: bool = False,
    timeout_ms: int = TIMEOUT_MS,
) -> create_partitions.CreatePartitionsRequest:
    """Each topic with the number of partitions that it shall have, and the replicas of the new ones or None."""
    return create_partitions.CreatePartitionsRequest(
        topics=[
            create_partitions.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [
                    create_partitions.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments
                ],
            )
            for name, count, assignments in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def delete_before(*parts: tuple[str, int, int], timeout_ms: int = TIMEOUT_MS) -> delete_records.DeleteRecordsRequest:
    """Delete what lies before an offset of (topic, partition, offset)."""
    return delete_records.DeleteRecordsRequest(
        topics=[
            delete_records.DeleteRecordsTopic(
                name=name, partitions=[delete_records.DeleteRecordsPartition(partition_index=index, offset=offset)]
            )
            for name, index, offset in parts
        ],
        timeout_ms=timeout_ms,
    )


def describe(
    *resources: tuple[int, str] | tuple[int, str, Sequence[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
) -> describe_configs.DescribeConfigsRequest:
    """Each resource with its type and name, and perhaps the settings that are asked for."""
    return describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=resource[0],
                resource_name=resource[1],
                configuration_keys=list(resource[2]) if len(resource) == 3 and resource[2] is not None else None,
            )
            for resource in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def replace(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> alter_configs.AlterConfigsRequest:
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for resource_type, name, configs in resources
        ],
        validate_only=validate_only,
    )


def alter(
    *resources: tuple[int, str, Sequence[tuple[int, str, str | None]]], validate_only: bool = False
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    """Each resource with operations (SET, "retention.ms", "1000")."""
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                    for operation, key, value in operations
                ],
            )
            for resource_type, name, operations in resources
        ],
        validate_only=validate_only,
    )


def log_dirs(*topics: Partitions, every: bool = False) -> describe_log_dirs.DescribeLogDirsRequest:
    asked = [
        describe_log_dirs.DescribableLogDirTopic(topic=name, partitions=list(partitions)) for name, partitions in topics
    ]
    return describe_log_dirs.DescribeLogDirsRequest(topics=None if every else asked)


def resources(*types: int) -> list_config_resources.ListConfigResourcesRequest:
    return list_config_resources.ListConfigResourcesRequest(resource_types=list(types))


def elect(
    *topics: Partitions, every: bool = False, election_type: int = 0, timeout_ms: int = TIMEOUT_MS
) -> elect_leaders.ElectLeadersRequest:
    asked = [elect_leaders.TopicPartitions(topic=name, partitions=list(partitions)) for name, partitions in topics]
    return elect_leaders.ElectLeadersRequest(
        election_type=election_type, topic_partitions=None if every else asked, timeout_ms=timeout_ms
    )


def producers(*topics: Partitions) -> describe_producers.DescribeProducersRequest:
    return describe_producers.DescribeProducersRequest(
        topics=[
            describe_producers.TopicRequest(name=name, partition_indexes=list(partitions))
            for name, partitions in topics
        ]
    )


def reassign(
    *parts: tuple[str, int, Sequence[int] | None], allow_change: bool = True, timeout_ms: int = TIMEOUT_MS
) -> alter_partition_reassignments.AlterPartitionReassignmentsRequest:
    """Move (topic, partition) to replicas; None calls a move off."""
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_change,
        topics=[
            alter_partition_reassignments.ReassignableTopic(
                name=name,
                partitions=[
                    alter_partition_reassignments.ReassignablePartition(
                        partition_index=index, replicas=None if replicas is None else list(replicas)
                    )
                ],
            )
            for name, index, replicas in parts
        ],
    )


def reassignments(
    *topics: Partitions, every: bool = False
) -> list_partition_reassignments.ListPartitionReassignmentsRequest:
    asked = [
        list_partition_reassignments.ListPartitionReassignmentsTopics(name=name, partition_indexes=list(partitions))
        for name, partitions in topics
    ]
    return list_partition_reassignments.ListPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS, topics=None if every else asked
    )


def page(
    *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> describe_topic_partitions.DescribeTopicPartitionsRequest:
    """A page of topics, of all if none are named."""
    start = None
    if cursor is not None:
        start = describe_topic_partitions.RequestCursor(topic_name=cursor[0], partition_index=cursor[1])
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=start,
    )

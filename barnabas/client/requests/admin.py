"""Requests about topics, partitions and settings."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.requests.topics import TIMEOUT_MS, Partitions, Topic, by_topic
from barnabas.protocol.messages import alter_configs as legacy
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.schema import ZERO_UUID

# Types of resources that have settings.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
# What IncrementalAlterConfigs does to a setting.
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


# --- topics ---


def new_topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    """With assignments (a partition and its replicas), the two numbers are usually -1."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create_topics(
    *topics: CreatableTopic, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS
) -> CreateTopicsRequest:
    """Create topics, each from `new_topic`."""
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def delete_topics(
    *topics: Topic | tuple[str | None, bytes] | None, timeout_ms: int = TIMEOUT_MS
) -> DeleteTopicsRequest:
    """Each topic is a name or an id. A pair has both, and None has neither: brokers refuse these. Versions without ids
    get the names."""
    pairs = [
        topic
        if isinstance(topic, tuple)
        else (topic, ZERO_UUID)
        if isinstance(topic, str)
        else (None, topic or ZERO_UUID)
        for topic in topics
    ]
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in pairs],
        topic_names=[name for name, _ in pairs if name is not None],
        timeout_ms=timeout_ms,
    )


def create_partitions(
    *topics: tuple[str, int] | tuple[str, int, Sequence[Sequence[int]] | None],
    validate_only: bool = False,
    timeout_ms: int = TIMEOUT_MS,
) -> CreatePartitionsRequest:
    """Each topic with its new number of partitions, and optionally the replicas of the new ones."""
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=topic[0],
                count=topic[1],
                assignments=[CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in topic[2]]
                if len(topic) == 3 and topic[2] is not None
                else None,
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def delete_records(*parts: tuple[str, int, int], timeout_ms: int = TIMEOUT_MS) -> DeleteRecordsRequest:
    """Delete the records before the offset, for each (topic, partition, offset)."""
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for _, index, offset in group],
            )
            for topic, group in by_topic(parts)
        ],
        timeout_ms=timeout_ms,
    )


def describe_topic_partitions(
    *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    """A page of topics, or of all if none is named, beginning at `cursor` (topic, partition)."""
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else RequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


# --- settings ---


def describe_configs(
    *resources: tuple[int, str] | tuple[int, str, Sequence[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    """Each resource with its type and name, and optionally the settings to describe."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource[0],
                resource_name=resource[1],
                configuration_keys=list(resource[2]) if len(resource) == 3 and resource[2] is not None else None,
            )
            for resource in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def alter_configs(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> legacy.AlterConfigsRequest:
    """Replace all settings of each resource with these (name, value) pairs."""
    return legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[legacy.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for resource_type, name, configs in resources
        ],
        validate_only=validate_only,
    )


def incremental_alter_configs(
    *resources: tuple[int, str, Sequence[tuple[int, str, str | None]]], validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    """Each resource with operations (SET, "retention.ms", "1000")."""
    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for operation, key, value in operations
                ],
            )
            for resource_type, name, operations in resources
        ],
        validate_only=validate_only,
    )


def list_config_resources(*types: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=list(types))


# --- partitions; `every` asks about all of them ---


def describe_log_dirs(*topics: Partitions, every: bool = False) -> DescribeLogDirsRequest:
    asked = [DescribableLogDirTopic(topic=name, partitions=list(partitions)) for name, partitions in topics]
    return DescribeLogDirsRequest(topics=None if every else asked)


def describe_producers(*topics: Partitions) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[ProducersTopic(name=name, partition_indexes=list(partitions)) for name, partitions in topics]
    )


def elect_leaders(
    *topics: Partitions, every: bool = False, election_type: int = 0, timeout_ms: int = TIMEOUT_MS
) -> ElectLeadersRequest:
    asked = [TopicPartitions(topic=name, partitions=list(partitions)) for name, partitions in topics]
    return ElectLeadersRequest(
        election_type=election_type, topic_partitions=None if every else asked, timeout_ms=timeout_ms
    )


def alter_partition_reassignments(
    *parts: tuple[str, int, Sequence[int] | None], allow_change: bool = True, timeout_ms: int = TIMEOUT_MS
) -> AlterPartitionReassignmentsRequest:
    """Move each (topic, partition) to these replicas; None cancels a move."""
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_change,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))
                    for _, index, replicas in group
                ],
            )
            for topic, group in by_topic(parts)
        ],
    )


def list_partition_reassignments(
    *topics: Partitions, every: bool = False, timeout_ms: int = TIMEOUT_MS
) -> ListPartitionReassignmentsRequest:
    asked = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=list(partitions)) for name, partitions in topics
    ]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None if every else asked)

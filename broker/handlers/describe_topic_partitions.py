"""DescribeTopicPartitions (key 75): topics and their partitions, a page at a time.

Topics come sorted by name. A page holds as many partitions as the client asks for, but not more than
max.request.partition.size.limit; if it ends early, its cursor says where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.images import PartitionImage, TopicImage
from broker.controller.topic_names import is_internal, problem_with_name
from broker.security.operations import TOPIC_OPERATIONS
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    asked = {topic.name for topic in message.topics}
    cursor = message.cursor
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return _invalid(message)
    first_topic, first_partition = (cursor.topic_name, cursor.partition_index) if cursor is not None else ("", 0)
    names = sorted(name for name in asked or broker.cluster.topics if name >= first_topic)
    room = max(1, min(message.response_partition_limit, broker.config.max_request_partition_size_limit))

    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if not room:
            return _page(topics, ResponseCursor(topic_name=name, partition_index=0))
        image = broker.cluster.topic(name)
        if image is None:
            topics.append(_unknown(name))
            continue
        start = first_partition if name == first_topic else 0
        partitions = image.partitions[start : start + room]
        topics.append(_described(broker, image, partitions))
        end = start + len(partitions)
        if end < len(image.partitions):
            return _page(topics, ResponseCursor(topic_name=name, partition_index=end))
        room -= len(partitions)
    return _page(topics, None)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: ResponseCursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _invalid(message: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    error = ErrorCode.INVALID_REQUEST
    topics = [
        DescribeTopicPartitionsResponseTopic(error_code=error, name=topic.name, partitions=[])
        for topic in message.topics
    ]
    return _page(topics, None)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    invalid = problem_with_name(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(
    broker: Broker, image: TopicImage, partitions: tuple[PartitionImage, ...]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=image.name,
        topic_id=image.topic_id,
        is_internal=image.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if partition.leader_id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replica_nodes),
                isr_nodes=list(partition.isr_nodes),
                # Kafka keeps lists of replicas that may lead although they are not in sync. There are none here.
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=broker.cluster.offline_replicas(partition),
            )
            for partition in partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )

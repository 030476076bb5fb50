"""DescribeTopicPartitions (key 75): topics and their partitions, page by page.

Topics come sorted by name. A page holds as many partitions as the client asks for, but not more than
max.request.partition.size.limit; if it ends early, its cursor says where the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.images import PartitionImage, TopicImage
from barnabas.broker.controller.topic_names import is_internal, problem_with_name
from barnabas.broker.replica.partition import NO_LEADER
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_NAMES_PER_RUN: Final = 2000


def handle(
    broker: Broker, request: Request, message: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    asked = set()
    for topic in message.topics:
        asked.add(topic.name)
        yield
    cursor = message.cursor
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return (yield from _invalid(message))
    first_topic, first_partition = (cursor.topic_name, cursor.partition_index) if cursor is not None else ("", 0)
    access = request.access
    names = yield from _sorted(name for name in list(asked or broker.cluster.topics) if name >= first_topic)
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    room = max(1, min(message.response_partition_limit, broker.config.max_request_partition_size_limit))

    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        yield
        if not access.topic(AclOperation.DESCRIBE, name):
            if asked:  # a topic that was not asked for is left out
                denied.append(_not_authorized(name))
            continue
        if not room:
            return _page([*topics, *denied], ResponseCursor(topic_name=name, partition_index=0))
        operations = access.operations(ResourceType.TOPIC, name)
        image = broker.cluster.topic(name)
        if image is None:
            topics.append(_unknown(name, operations))
            continue
        start = first_partition if name == first_topic else 0
        partitions = image.partitions[start : start + room]
        topics.append(_described(broker, image, partitions, operations))
        end = start + len(partitions)
        if end < len(image.partitions):
            return _page([*topics, *denied], ResponseCursor(topic_name=name, partition_index=end))
        room -= len(partitions)
    return _page([*topics, *denied], None)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: ResponseCursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _sorted(names: Iterator[str]) -> Steps[Iterator[str]]:
    """Sorted a few at a time, because a request may name very many."""
    runs = []
    while run := sorted(islice(names, _NAMES_PER_RUN)):
        runs.append(run)
        yield
    return merge(*runs)


def _invalid(message: DescribeTopicPartitionsRequest) -> Steps[DescribeTopicPartitionsResponse]:
    topics = yield from each(
        lambda topic: DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name, partitions=[]
        ),
        message.topics,
    )
    return _page(topics, None)


def _not_authorized(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, partitions=[])


def _unknown(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    invalid = problem_with_name(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _described(
    broker: Broker, image: TopicImage, partitions: tuple[PartitionImage, ...], operations: int
) -> DescribeTopicPartitionsResponseTopic:
    alive = broker.cluster.brokers
    return DescribeTopicPartitionsResponseTopic(
        name=image.name,
        topic_id=image.topic_id,
        is_internal=image.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if partition.leader_id in alive else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.partition_index,
                leader_id=partition.leader_id if partition.leader_id in alive else NO_LEADER,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replica_nodes),
                isr_nodes=list(partition.isr_nodes),
                # Kafka lists replicas that may lead although they are not in sync. There are none here.
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=broker.cluster.offline_replicas(partition),
            )
            for partition in partitions
        ],
        topic_authorized_operations=operations,
    )

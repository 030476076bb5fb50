"""OffsetDelete (key 47): delete a group's committed offsets of partitions that it does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_AT_A_TIME: Final = 200


def handle(broker: Broker, request: Request, message: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse | None]:
    access = request.access
    if not access.group(AclOperation.DELETE, message.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, topics=[])
    if not message.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID, topics=[])
    known: dict[TopicPartition, None] = {}
    denied: set[str] = set()
    for topic in message.topics:
        if not access.topic(AclOperation.READ, topic.name):
            denied.add(topic.name)
            continue
        for partition in topic.partitions:
            if broker.cluster.partition(topic.name, partition.partition_index) is not None:
                known[TopicPartition(topic.name, partition.partition_index)] = None
            yield
    errors: dict[TopicPartition, ErrorCode] = {}
    remaining = list(known)
    for start in range(0, max(len(remaining), 1), _AT_A_TIME):
        error, some = broker.groups.delete_offsets(message.group_id, remaining[start : start + _AT_A_TIME])
        if error:
            return OffsetDeleteResponse(error_code=error, topics=[])
        errors.update(some)
        yield
    topics = []
    for topic in message.topics:
        answers = []
        otherwise = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic.name in denied:
            otherwise = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for partition in topic.partitions:
            index = partition.partition_index
            error = errors.get(TopicPartition(topic.name, index), otherwise)
            answers.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
            yield
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
        yield
    response = OffsetDeleteResponse(topics=topics)
    return when_committed(broker, request, broker.groups, [message.group_id], response, _not_coordinator)


def _not_coordinator() -> Steps[OffsetDeleteResponse | None]:
    """Only the next coordinator can say whether they are deleted."""
    yield
    return OffsetDeleteResponse(error_code=ErrorCode.NOT_COORDINATOR, topics=[])

"""OffsetDelete (key 47): delete a group's committed offsets of partitions that it does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not message.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID, topics=[])
    known = {
        (topic.name, partition.partition_index)
        for topic in message.topics
        for partition in topic.partitions
        if broker.cluster.partition(topic.name, partition.partition_index) is not None
    }
    error, errors = broker.groups.delete_offsets(message.group_id, list(known))
    if error:
        return OffsetDeleteResponse(error_code=error, topics=[])
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(
                            (topic.name, partition.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )

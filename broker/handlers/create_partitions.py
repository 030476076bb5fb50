"""CreatePartitions (key 37): give topics more partitions. All versions say the same; version 2 is flexible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.create_partitions import NewPartitions
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    if message.timeout_ms <= 0:
        timed_out = ErrorCode.REQUEST_TIMED_OUT
        return CreatePartitionsResponse(
            results=[CreatePartitionsTopicResult(name=topic.name, error_code=timed_out) for topic in message.topics]
        )
    results = await broker.create_partitions(
        [_wanted(topic) for topic in message.topics], validate_only=message.validate_only
    )
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=result.name or "", error_code=result.error_code, error_message=result.error_message
            )
            for result in results
        ]
    )


def _wanted(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(topic.name, topic.count, None if assignments is None else [a.broker_ids for a in assignments])

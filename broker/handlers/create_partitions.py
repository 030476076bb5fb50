"""CreatePartitions (key 37): give topics more partitions. Only the controller does that.

All versions have the same fields; version 2 is flexible.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller.create_partitions import MAX_TOPICS_PER_REQUEST, TOO_MANY_TOPICS, NewPartitions
from barnabas.broker.controller.results import TopicResult, duplicates
from barnabas.broker.server.metering import admitted
from barnabas.broker.server.pieces import each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    term = broker.controller.term
    if term is None or message.timeout_ms <= 0:
        error = ErrorCode.NOT_CONTROLLER if term is None else ErrorCode.REQUEST_TIMED_OUT
        refused = await broker.pieces.result(each(partial(_refused, error), message.topics))
        return CreatePartitionsResponse(results=refused)
    if len(message.topics) > MAX_TOPICS_PER_REQUEST:  # before anybody looks at each of them
        too_many = partial(_refused, ErrorCode.POLICY_VIOLATION, message=TOO_MANY_TOPICS)
        return CreatePartitionsResponse(results=await broker.pieces.result(each(too_many, message.topics)))
    access = request.access
    twice = duplicates(topic.name for topic in message.topics)
    denied = {
        topic.name: _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic)
        for topic in message.topics
        if topic.name not in twice and not access.topic(AclOperation.ALTER, topic.name)
    }
    allowed = [topic for topic in message.topics if topic.name not in denied]
    wanted = await broker.pieces.result(each(_wanted, allowed))
    results = await term.create_partitions(
        wanted,
        validate_only=message.validate_only,
        timeout_ms=message.timeout_ms,
        admit=admitted(request, strict_from_version=3),
    )
    return CreatePartitionsResponse(results=[*await broker.pieces.result(each(_answer, results)), *denied.values()])


def _refused(error: ErrorCode, topic: CreatePartitionsTopic, message: str | None = None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)


def _answer(result: TopicResult) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=result.name or "", error_code=result.error_code, error_message=result.error_message
    )


def _wanted(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(topic.name, topic.count, None if assignments is None else [a.broker_ids for a in assignments])

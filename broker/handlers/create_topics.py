"""CreateTopics (key 19): create topics, or with validate_only say whether they could be created.

Only the controller does that. Version 5 answers with the new topic's size and settings, 7 with its id. With a timeout
of 0 or less nothing is created: Kafka's controller would not even start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.config import TopicConfig
from barnabas.broker.config_resources import MOST_SETTINGS
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.results import MAX_PARTITIONS_PER_REQUEST, TOO_MANY_PARTITIONS, TopicResult, duplicates
from barnabas.broker.security.authorizer import EVERYTHING, Access
from barnabas.broker.server.metering import admitted
from barnabas.broker.server.pieces import each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request | None, message: CreateTopicsRequest) -> CreateTopicsResponse:
    term = broker.controller.term
    if term is None or message.timeout_ms <= 0:
        error = ErrorCode.NOT_CONTROLLER if term is None else ErrorCode.REQUEST_TIMED_OUT
        return CreateTopicsResponse(topics=await broker.pieces.result(each(partial(_refused, error), message.topics)))
    if len(message.topics) > MAX_PARTITIONS_PER_REQUEST:
        too_many = partial(_refused, ErrorCode.POLICY_VIOLATION, message=TOO_MANY_PARTITIONS)
        return CreateTopicsResponse(topics=await broker.pieces.result(each(too_many, message.topics)))
    access = EVERYTHING if request is None else request.access
    denied = _not_creatable(access, message.topics)
    too_long = [topic for topic in message.topics if len(topic.configs) > MOST_SETTINGS and topic.name not in denied]
    allowed = [topic for topic in message.topics if len(topic.configs) <= MOST_SETTINGS and topic.name not in denied]
    wanted = await broker.pieces.result(each(_wanted, allowed))
    results = await term.create_topics(
        wanted,
        validate_only=message.validate_only,
        timeout_ms=message.timeout_ms,
        admit=admitted(request, strict_from_version=6),
    )
    created = await broker.pieces.result(each(partial(_result, broker, access), results))
    refused = [_refused(ErrorCode.INVALID_CONFIG, topic, f"More than {MOST_SETTINGS} settings.") for topic in too_long]
    return CreateTopicsResponse(topics=[*created, *denied.values(), *refused])


def _not_creatable(access: Access, topics: Sequence[CreatableTopic]) -> dict[str, CreatableTopicResult]:
    """Those that the client may not create. A topic that is named twice is refused for that."""
    if access.cluster(AclOperation.CREATE):
        return {}
    twice = duplicates(topic.name for topic in topics)
    return {
        topic.name: CreatableTopicResult(
            name=topic.name,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="Authorization failed.",
        )
        for topic in topics
        if topic.name not in twice and not access.topic(AclOperation.CREATE, topic.name)
    }


def _refused(error: ErrorCode, topic: CreatableTopic, message: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(name=topic.name, error_code=error, error_message=message)


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _result(broker: Broker, access: Access, result: TopicResult) -> CreatableTopicResult:
    answer = CreatableTopicResult(
        name=result.name or "",
        topic_id=ZERO_UUID if result.error_code else result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )
    if not result.error_code and not access.topic(AclOperation.DESCRIBE_CONFIGS, answer.name):
        answer.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answer.num_partitions = answer.replication_factor = -1
    elif not result.error_code:
        config = TopicConfig(result.configs, broker.config)
        answer.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=result.configs.get(entry.name, entry.value),
                read_only=entry.read_only,
                config_source=config.source(entry.name),
                is_sensitive=entry.sensitive,
            )
            for entry in sorted(config.describe())
        ]
    return answer

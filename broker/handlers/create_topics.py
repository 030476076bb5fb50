"""CreateTopics (key 19): create topics, or with validate_only say whether they could be.

Version 5 answers with the new topic's size and settings, 7 with its id. With a timeout of 0 or less nothing is created:
Kafka's controller would not even begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config import TopicConfig
from broker.controller.create_topics import NewTopic
from broker.controller.decisions import TopicResult
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: CreateTopicsRequest) -> CreateTopicsResponse:
    if message.timeout_ms <= 0:
        timed_out = ErrorCode.REQUEST_TIMED_OUT
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=topic.name, error_code=timed_out) for topic in message.topics]
        )
    results = await broker.create_topics(
        [_wanted(topic) for topic in message.topics], validate_only=message.validate_only
    )
    return CreateTopicsResponse(topics=[_result(broker, result) for result in results])


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _result(broker: Broker, result: TopicResult) -> CreatableTopicResult:
    answer = CreatableTopicResult(
        name=result.name or "",
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )
    if not result.error_code:
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

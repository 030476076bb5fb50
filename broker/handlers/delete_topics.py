"""DeleteTopics (key 20): delete topics. Version 6 names them by id or by name.

Version 5 adds messages to the errors. Before version 3 there was no error of its own for a broker that deletes nothing
(delete.topic.enable).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.delete_topics import TopicReference
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if request.version >= 6:
        topics = [TopicReference(topic.name, topic.topic_id) for topic in message.topics]
    else:
        topics = [TopicReference(name) for name in message.topic_names]
    if not broker.config.delete_topic_enable:
        disabled = ErrorCode.INVALID_REQUEST if request.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return _all_refused(topics, disabled)
    if message.timeout_ms <= 0:
        return _all_refused(topics, ErrorCode.REQUEST_TIMED_OUT)
    results = await broker.controller.delete_topics(topics)
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=result.error_code,
                error_message=result.error_message,
            )
            for result in results
        ]
    )


def _all_refused(topics: list[TopicReference], error: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=name, topic_id=topic_id, error_code=error) for name, topic_id in topics]
    )

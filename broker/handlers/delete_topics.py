"""DeleteTopics (key 20): delete topics. Only the controller does that. Version 6 names them by id or by name.

Version 5 adds messages to the errors. Before version 3 there was no separate error for delete.topic.enable=false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.controller.results import TopicResult
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.metering import admitted
from barnabas.broker.server.pieces import each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_DENIED: Final = "Topic authorization failed."


async def handle(broker: Broker, request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if request.version >= 6:
        topics = await broker.pieces.result(each(_reference, message.topics))
    else:
        topics = await broker.pieces.result(each(TopicReference, message.topic_names))
    term = broker.controller.term
    refusal = ErrorCode.NONE
    if term is None:
        refusal = ErrorCode.NOT_CONTROLLER
    elif not broker.config.delete_topic_enable:
        refusal = ErrorCode.INVALID_REQUEST if request.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
    elif message.timeout_ms <= 0:
        refusal = ErrorCode.REQUEST_TIMED_OUT
    if term is None or refusal:
        results: Sequence[TopicResult] = await broker.pieces.result(each(partial(_refused, refusal), topics))
    else:
        denied = [] if request.connection.access is None else _not_deletable(broker, request.access, topics)
        refused = {reference for reference, _ in denied}
        allowed = [topic for topic in topics if topic not in refused] if refused else topics
        deleted = await term.delete_topics(allowed, admit=admitted(request, strict_from_version=5))
        results = [*deleted, *(result for _, result in denied)]
    return DeleteTopicsResponse(responses=await broker.pieces.result(each(_answer, results)))


def _not_deletable(
    broker: Broker, access: Access, topics: Sequence[TopicReference]
) -> list[tuple[TopicReference, TopicResult]]:
    """Those that the client may not delete. A client that may not describe a topic is not told whether it exists."""
    if access.cluster(AclOperation.DELETE):
        return []
    times = Counter(topics)
    denied = []
    for reference in topics:
        by_id = reference.name is None
        name = broker.cluster.name_of(reference.topic_id) if by_id else reference.name
        if name is None or times[reference] > 1 or (not by_id and reference.topic_id != ZERO_UUID):
            continue  # nobody may do that
        if not access.topic(AclOperation.DESCRIBE, name):
            told = TopicResult(reference.name, reference.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _DENIED)
        elif broker.cluster.topic(name) is None or access.topic(AclOperation.DELETE, name):
            continue
        else:
            told = TopicResult(name, reference.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _DENIED)
        denied.append((reference, told))
    return denied


def _reference(topic: DeleteTopicState) -> TopicReference:
    return TopicReference(topic.name, topic.topic_id)


def _refused(error: ErrorCode, topic: TopicReference) -> TopicResult:
    return TopicResult(topic.name, topic.topic_id, error)


def _answer(result: TopicResult) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
    )

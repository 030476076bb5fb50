"""DeleteShareGroupOffsets (key 92): forget how far a share group without members has read topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.group.share.offsets import delete_error
from barnabas.broker.group.topics import MOST_NAMES
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DeleteShareGroupOffsetsRequest) -> None:
    access = request.access
    if not broker.understood.share_version:
        request.answer(delete_error(ErrorCode.UNSUPPORTED_VERSION))
        return
    if not access.group(AclOperation.DELETE, message.group_id):
        request.answer(delete_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    if not message.group_id:
        request.answer(delete_error(ErrorCode.INVALID_GROUP_ID))
        return
    if len(message.topics) > MOST_NAMES:
        request.answer(delete_error(ErrorCode.INVALID_REQUEST, f"A request names at most {MOST_NAMES} topics."))
        return
    topics, refused = [], []
    for topic in message.topics:
        if access.topic(AclOperation.READ, topic.topic_name):
            topics.append(topic)
            continue
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=ZERO_UUID, error_code=error, error_message=text_of(error)
            )
        )

    def answer(response: DeleteShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses = [*response.responses, *refused]
        request.answer(response)

    broker.groups.delete_share_offsets(DeleteShareGroupOffsetsRequest(group_id=message.group_id, topics=topics), answer)

"""AlterShareGroupOffsets (key 91): where a share group without members begins to read partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.group.share.offsets import alter_error
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: AlterShareGroupOffsetsRequest) -> None:
    access = request.access
    if not broker.understood.share_version:
        request.answer(alter_error(ErrorCode.UNSUPPORTED_VERSION))
        return
    if not access.group(AclOperation.READ, message.group_id):
        request.answer(alter_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    if not message.group_id:
        request.answer(alter_error(ErrorCode.INVALID_GROUP_ID))
        return
    topics, refused = [], []
    for topic in message.topics:
        error, image = ErrorCode.NONE, broker.cluster.topic(topic.topic_name)
        if not access.topic(AclOperation.READ, topic.topic_name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not error:
            topics.append(topic)
            continue
        refused.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=ZERO_UUID if image is None else image.topic_id,
                partitions=[
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index, error_code=error, error_message=text_of(error)
                    )
                    for each in topic.partitions
                ],
            )
        )

    def answer(response: AlterShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses = [*refused, *response.responses]
        request.answer(response)

    broker.groups.alter_share_offsets(AlterShareGroupOffsetsRequest(group_id=message.group_id, topics=topics), answer)

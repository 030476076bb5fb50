"""AlterShareGroupOffsets (key 91): where a share group without members begins to read partitions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.group.share.offsets import alter_error, alteration
from barnabas.broker.group.topics import MOST_NAMES
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: AlterShareGroupOffsetsRequest
) -> Steps[AlterShareGroupOffsetsResponse | None]:
    access = request.access
    if not broker.understood.share_version:
        return alter_error(ErrorCode.UNSUPPORTED_VERSION)
    if not access.group(AclOperation.READ, message.group_id):
        return alter_error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not message.group_id:
        return alter_error(ErrorCode.INVALID_GROUP_ID)
    if len(message.topics) > MOST_NAMES:
        return alter_error(ErrorCode.INVALID_REQUEST, f"A request names at most {MOST_NAMES} topics.")
    topics, refused = [], []
    for topic in message.topics:
        error, image = ErrorCode.NONE, broker.cluster.topic(topic.topic_name)
        if not access.topic(AclOperation.READ, topic.topic_name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not error:
            topics.append(topic)
        else:
            topic_id = ZERO_UUID if image is None else image.topic_id
            partitions = yield from each(partial(_refused, error), topic.partitions)
            refused.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name, topic_id=topic_id, partitions=partitions
                )
            )
        yield
    wanted = yield from alteration(broker.cluster, topics)

    def answer(response: AlterShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses = [*refused, *response.responses]
        broker.server.dispatcher.answer(request, response)

    broker.groups.alter_share_offsets(message.group_id, wanted, answer)
    return None


def _refused(
    error: ErrorCode, partition: AlterShareGroupOffsetsRequestPartition
) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=partition.partition_index, error_code=error, error_message=text_of(error)
    )

"""OffsetCommit (key 8): commit how far a group has read.

Up to version 4 a client may say for how long its offsets are kept; 6 adds leader epochs; 7 static members; 10 names
topics by id. An unknown partition, or metadata that is too long, fails alone. From version 9 there is a separate
error for an unknown group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.images import TopicImage
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.handlers.committing import Commit, Done, Offsets
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_LATEST_MS: Final = 2**63 - 1  # the latest timestamp that a record can have


def handle(broker: Broker, request: Request, message: OffsetCommitRequest) -> Steps[None]:
    now_ms = broker.clock.now_ms()
    expires = -1 if message.retention_time_ms == -1 else min(now_ms + message.retention_time_ms, _LATEST_MS)
    response = OffsetCommitResponse(topics=[])
    epoch = message.generation_id_or_member_epoch
    by = Committer(message.member_id, message.group_instance_id, epoch, request.version)

    def commit(offsets: Offsets, done: Done) -> None:
        broker.groups.commit(message.group_id, by, offsets, done)

    access = request.access
    may_commit = access.group(AclOperation.READ, message.group_id)
    committing = Commit(commit, lambda: broker.server.dispatcher.answer(request, response))
    for topic in message.topics:
        image = _find(broker, request.version, topic)
        answers = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[])
        response.topics.append(answers)
        for wanted in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=wanted.partition_index)
            answers.partitions.append(answer)
            answer.error_code = (
                _objection(access, request.version, image, topic.name, wanted.partition_index)
                if may_commit
                else ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
            if not answer.error_code and image is not None:
                metadata = wanted.committed_metadata or ""
                committing.add(
                    TopicPartition(image.name, wanted.partition_index),
                    CommittedOffset(
                        wanted.committed_offset,
                        wanted.committed_leader_epoch,
                        metadata,
                        now_ms,
                        expires,
                        image.topic_id,
                    ),
                    answer,
                    too_long=length_of(metadata) > broker.config.offset_metadata_max_bytes,
                )
            yield
        yield
    if may_commit:
        yield from committing.steps()
    else:
        broker.server.dispatcher.answer(request, response)


def _find(broker: Broker, version: int, topic: OffsetCommitRequestTopic) -> TopicImage | None:
    return broker.cluster.topic_by_id(topic.topic_id) if version >= 10 else broker.cluster.topic(topic.name)


def _objection(access: Access, version: int, image: TopicImage | None, name: str, index: int) -> ErrorCode:
    if image is None and version >= 10:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not access.topic(AclOperation.READ, name if image is None else image.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if image is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if 0 <= index < len(image.partitions) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def length_of(metadata: str) -> int:
    """As Kafka counts it, despite the setting's name: in Java characters, which are UTF-16 code units."""
    return len(metadata.encode("utf-16-be")) // 2

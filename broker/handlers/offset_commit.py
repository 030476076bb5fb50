"""OffsetCommit (key 8): commit how far a group has read.

Up to version 4 a client may say for how long its offsets are kept; 6 adds leader epochs; 7 static members; 10 names
topics by id. A partition that does not exist, or metadata that are too long, fail alone. That a group does not exist is
an error of its own from version 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.images import TopicImage
from broker.group.records import CommittedOffset
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: OffsetCommitRequest) -> None:
    now_ms = broker.clock.now_ms()
    expires = -1 if message.retention_time_ms == -1 else now_ms + message.retention_time_ms
    response = OffsetCommitResponse(topics=[])
    accepted: list[OffsetCommitResponsePartition] = []
    too_long: list[OffsetCommitResponsePartition] = []
    offsets = []
    for topic in message.topics:
        image = _find(broker, request.version, topic)
        answers = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[])
        response.topics.append(answers)
        for wanted in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=wanted.partition_index)
            answers.partitions.append(answer)
            answer.error_code = _objection(request.version, image, wanted.partition_index)
            if answer.error_code or image is None:
                continue
            accepted.append(answer)
            if length_of(wanted.committed_metadata or "") > broker.config.offset_metadata_max_bytes:
                too_long.append(answer)
            else:
                committed = CommittedOffset(
                    wanted.committed_offset,
                    wanted.committed_leader_epoch,
                    wanted.committed_metadata or "",
                    now_ms,
                    expires,
                    image.topic_id,
                )
                offsets.append(((image.name, wanted.partition_index), committed))

    def done(error: ErrorCode) -> None:
        if error == ErrorCode.GROUP_ID_NOT_FOUND and request.version < 9:
            error = ErrorCode.ILLEGAL_GENERATION
        for answer in accepted:
            answer.error_code = error
        if not error:
            for answer in too_long:
                answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
        request.answer(response)

    broker.groups.commit(
        message.group_id,
        message.member_id,
        message.group_instance_id,
        message.generation_id_or_member_epoch,
        offsets,
        done,
    )


def _find(broker: Broker, version: int, topic: OffsetCommitRequestTopic) -> TopicImage | None:
    return broker.cluster.topic_by_id(topic.topic_id) if version >= 10 else broker.cluster.topic(topic.name)


def _objection(version: int, image: TopicImage | None, index: int) -> ErrorCode:
    if image is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if 0 <= index < len(image.partitions) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def length_of(metadata: str) -> int:
    """As Kafka counts it, in spite of the setting's name: in the characters of Java, which are UTF-16's."""
    return len(metadata.encode("utf-16-be")) // 2

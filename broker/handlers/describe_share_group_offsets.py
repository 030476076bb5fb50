"""DescribeShareGroupOffsets (key 90): how far share groups have read partitions; from version 1 with their lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.server.pieces import spread
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from barnabas.protocol.schema import ZERO_UUID
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import MAX_INT64

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_NO_OFFSET: Final = -1


async def handle(
    broker: Broker, request: Request, message: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    groups = [await _describe(broker, request, wanted) async for wanted in spread(message.groups)]
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(
    broker: Broker, request: Request, wanted: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    access, group_id = request.access, wanted.group_id
    answer = DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=[])
    if not broker.understood.share_version:
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer
    if not access.group(AclOperation.DESCRIBE, group_id):
        answer.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return answer
    if wanted.topics is None:
        error = broker.groups.objection(group_id)
        if error:
            answer.error_code, answer.error_message = error, text_of(error)
            return answer
        group = broker.groups.shard(group_id).groups.get(group_id)
        known = group.state_partitions.assignable() if isinstance(group, ShareGroup) else {}
        asked = {
            (topic_id, name): sorted(indexes)
            for topic_id, indexes in known.items()
            if (name := broker.cluster.name_of(topic_id)) is not None and access.topic(AclOperation.DESCRIBE, name)
        }
        answer.topics = await _offsets(broker, group_id, asked)
        return answer
    asked, unknown, refused = {}, [], []
    async for topic in spread(wanted.topics):
        image = broker.cluster.topic(topic.topic_name)
        if not access.topic(AclOperation.DESCRIBE, topic.topic_name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(await _without_offsets(topic.topic_name, topic.partitions, error))
        elif image is None:
            unknown.append(await _without_offsets(topic.topic_name, topic.partitions, ErrorCode.NONE))
        else:
            asked[image.topic_id, image.name] = topic.partitions
    answer.topics = [*await _offsets(broker, group_id, asked), *unknown, *refused]
    return answer


async def _offsets(
    broker: Broker, group_id: str, asked: Mapping[tuple[bytes, str], list[int]]
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    if not asked:
        return []
    summary = await broker.share_state.read_summary(
        ReadShareGroupStateSummaryRequest(
            group_id=group_id,
            topics=[
                ReadStateSummaryData(
                    topic_id=topic_id,
                    partitions=[PartitionData(partition=index, leader_epoch=-1) async for index in spread(indexes)],
                )
                async for (topic_id, _), indexes in spread(asked.items())
            ],
        )
    )
    names = dict(asked.keys())
    with_lag = [
        TopicPartition(names[topic.topic_id], each.partition)
        async for topic in spread(summary.results)
        async for each in spread(topic.partitions)
        if _has_lag(each)
    ]
    ends = await broker.end_offsets.of(with_lag)
    return [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=names[topic.topic_id],
            topic_id=topic.topic_id,
            partitions=[
                _partition(each, ends.get(TopicPartition(names[topic.topic_id], each.partition)))
                async for each in spread(topic.partitions)
            ],
        )
        async for topic in spread(summary.results)
    ]


def _has_lag(summary: PartitionResult) -> bool:
    return not summary.error_code and summary.start_offset != _NO_OFFSET and summary.delivery_complete_count != -1


def _partition(summary: PartitionResult, end: int | ErrorCode | None) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=summary.partition, start_offset=_NO_OFFSET, leader_epoch=0, lag=-1
    )
    if isinstance(end, ErrorCode):
        answer.start_offset = 0
        answer.error_code, answer.error_message = end, text_of(end)
    elif not summary.error_code:
        answer.start_offset, answer.leader_epoch = summary.start_offset, summary.leader_epoch
        if end is not None:
            # Brokers may be told any offsets: the result stays within what the field can hold.
            lag = end - summary.start_offset - summary.delivery_complete_count
            answer.lag = max(-MAX_INT64, min(lag, MAX_INT64))
    return answer


async def _without_offsets(name: str, indexes: list[int], error: ErrorCode) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_UUID,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=_NO_OFFSET,
                leader_epoch=0,
                error_code=error,
                error_message=text_of(error) if error else None,
            )
            async for index in spread(indexes)
        ],
    )

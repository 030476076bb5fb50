"""Requests of share groups as their members and administrators send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def share_group_heartbeat(
    group: str, member: str, epoch: int, topics: Sequence[str] | None = None, **fields: Any
) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=None if topics is None else list(topics),
        **fields,
    )


def share_group_describe(*groups: str, operations: bool = False) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


def describe_share_group_offsets(
    groups: Mapping[str, Mapping[str, Sequence[int]] | None],
) -> DescribeShareGroupOffsetsRequest:
    """Of each group some partitions by topic, or (with None) all that it has read."""
    return DescribeShareGroupOffsetsRequest(
        groups=[
            DescribeShareGroupOffsetsRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(indexes))
                    for name, indexes in topics.items()
                ],
            )
            for group, topics in groups.items()
        ]
    )


def alter_share_group_offsets(group: str, *offsets: tuple[str, int, int]) -> AlterShareGroupOffsetsRequest:
    """Of (topic, partition, start offset)."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for topic, index, offset in offsets:
        topics.setdefault(topic, []).append(
            AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        )
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=each) for name, each in topics.items()],
    )


def delete_share_group_offsets(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    )

"""How far share groups have read: where each partition's first record is that is not done with, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.client import Client
from barnabas.client.errors import check
from barnabas.client.requests import share_groups
from barnabas.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from barnabas.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from barnabas.protocol.topic_partition import TopicPartition


class ShareOffset(NamedTuple):
    """None is what nobody knows: a partition of which nothing was read yet."""

    start: int | None
    lag: int | None


def share_offsets(client: Client, group: str) -> dict[TopicPartition, ShareOffset]:
    """Of all partitions that a share group has read, or is about to."""

    def attempt() -> dict[TopicPartition, ShareOffset]:
        request = share_groups.describe_share_group_offsets({group: None})
        (found,) = client.coordinator(group).ask(request, DescribeShareGroupOffsetsResponse).groups
        check(found.error_code, f"group '{group}'")
        offsets = {}
        for topic in found.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic_name, each.partition_index)
                check(each.error_code, f"group '{group}' in {partition}")
                start, lag = each.start_offset, each.lag
                offsets[partition] = ShareOffset(start if start >= 0 else None, lag if lag >= 0 else None)
        return offsets

    return client.settled(attempt)


def alter_share_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """BrokerError for the first partition whose offset was refused."""
    request = share_groups.alter_share_group_offsets(
        group, *((topic, index, offset) for (topic, index), offset in sorted(offsets.items()))
    )

    def attempt() -> None:
        answer = client.coordinator(group).ask(request, AlterShareGroupOffsetsResponse)
        check(answer.error_code, f"group '{group}'")
        for topic in answer.responses:
            for each in topic.partitions:
                check(
                    each.error_code,
                    f"setting the offset of group '{group}' in {topic.topic_name}-{each.partition_index}",
                )

    if offsets:
        client.settled(attempt)

"""DescribeShareGroupOffsets: the positions of share groups in their partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, Uuid, field


class DescribeShareGroupOffsetsRequest(Message, versions="0-1", flexible="0+"):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field("0+")


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: String = field("0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field("0+", nullable="0+")


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = field("0+")
    partitions: list[Int32] = field("0+")


class DescribeShareGroupOffsetsResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field("0+")


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: String = field("0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field("0+")


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    leader_epoch: Int32 = field("0+")
    lag: Int64 = field("1+", default=-1)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

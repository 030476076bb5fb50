"""OffsetDelete: delete a group's committed offsets for partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class OffsetDeleteRequest(Message, versions="0"):
    group_id: String = field("0+")
    topics: list[OffsetDeleteRequestTopic] = field("0+")


class OffsetDeleteRequestTopic(Struct):
    name: String = field("0+")
    partitions: list[OffsetDeleteRequestPartition] = field("0+")


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32 = field("0+")


class OffsetDeleteResponse(Message, versions="0"):
    error_code: Int16 = field("0+", default=0)
    throttle_time_ms: Int32 = field("0+", default=0)
    topics: list[OffsetDeleteResponseTopic] = field("0+")


class OffsetDeleteResponseTopic(Struct):
    name: String = field("0+")
    partitions: list[OffsetDeleteResponsePartition] = field("0+")


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)

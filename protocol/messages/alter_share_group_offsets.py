"""AlterShareGroupOffsets: set where a share group starts."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, Uuid, field


class AlterShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    group_id: String = field("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = field("0+")


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: String = field("0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field("0+")


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")


class AlterShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field("0+")


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field("0+")


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

"""ListOffsets: look up offsets by timestamp, or the first and the last."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, field


class ListOffsetsRequest(Message, versions="1-11", flexible="6+"):
    replica_id: Int32 = field("0+")
    isolation_level: Int8 = field("2+", default=0)
    topics: list[ListOffsetsTopic] = field("0+")
    timeout_ms: Int32 = field("10+", default=0)


class ListOffsetsTopic(Struct):
    name: String = field("0+")
    partitions: list[ListOffsetsPartition] = field("0+")


class ListOffsetsPartition(Struct):
    partition_index: Int32 = field("0+")
    current_leader_epoch: Int32 = field("4+", default=-1)
    timestamp: Int64 = field("0+")


class ListOffsetsResponse(Message, versions="1-11", flexible="6+"):
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[ListOffsetsTopicResponse] = field("0+")


class ListOffsetsTopicResponse(Struct):
    name: String = field("0+")
    partitions: list[ListOffsetsPartitionResponse] = field("0+")


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)

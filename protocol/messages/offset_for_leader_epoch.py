"""OffsetForLeaderEpoch: where a leader epoch ends. A reader uses it to detect truncation."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, field


class OffsetForLeaderEpochRequest(Message, versions="2-4", flexible="4+"):
    replica_id: Int32 = field("3+", default=-2)
    topics: list[OffsetForLeaderTopic] = field("0+")


class OffsetForLeaderTopic(Struct):
    topic: String = field("0+")
    partitions: list[OffsetForLeaderPartition] = field("0+")


class OffsetForLeaderPartition(Struct):
    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("2+", default=-1)
    leader_epoch: Int32 = field("0+")


class OffsetForLeaderEpochResponse(Message, versions="2-4", flexible="4+"):
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[OffsetForLeaderTopicResult] = field("0+")


class OffsetForLeaderTopicResult(Struct):
    topic: String = field("0+")
    partitions: list[EpochEndOffset] = field("0+")


class EpochEndOffset(Struct):
    error_code: Int16 = field("0+", default=0)
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("1+", default=-1)
    end_offset: Int64 = field("0+", default=-1)

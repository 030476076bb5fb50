"""OffsetCommit: commit a group's offsets."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Struct, Uuid, field


class OffsetCommitRequest(Message, versions="2-10", flexible="8+"):
    group_id: String = field("0+")
    generation_id_or_member_epoch: Int32 = field("1+", default=-1)
    member_id: String = field("1+", default="")
    group_instance_id: String | None = field("7+", nullable="7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = field("0+")


class OffsetCommitRequestTopic(Struct):
    name: String = field("0-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition] = field("0+")


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    committed_leader_epoch: Int32 = field("6+", default=-1)
    committed_metadata: String | None = field("0+", nullable="0+")


class OffsetCommitResponse(Message, versions="2-10", flexible="8+"):
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetCommitResponseTopic] = field("0+")


class OffsetCommitResponseTopic(Struct):
    name: String = field("0-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition] = field("0+")


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)

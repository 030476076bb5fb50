"""TxnOffsetCommit: commit a group's offsets as part of a transaction."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, field


class TxnOffsetCommitRequest(Message, versions="0-5", flexible="3+"):
    transactional_id: String = field("0+")
    group_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    generation_id: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field("0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: String = field("0+")
    partitions: list[TxnOffsetCommitRequestPartition] = field("0+")


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    committed_leader_epoch: Int32 = field("2+", default=-1)
    committed_metadata: String | None = field("0+", nullable="0+")


class TxnOffsetCommitResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    topics: list[TxnOffsetCommitResponseTopic] = field("0+")


class TxnOffsetCommitResponseTopic(Struct):
    name: String = field("0+")
    partitions: list[TxnOffsetCommitResponsePartition] = field("0+")


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)

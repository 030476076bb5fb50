"""InitializeShareGroupState: create the persisted state of a share group's partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, Uuid, field


class InitializeShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: String = field("0+")
    topics: list[InitializeStateData] = field("0+")


class InitializeStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class PartitionData(Struct):
    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")


class InitializeShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = field("0+")


class InitializeStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

"""ReadShareGroupStateSummary: read only the start offsets of a share group's partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, Uuid, field


class ReadShareGroupStateSummaryRequest(Message, versions="0-1", flexible="0+"):
    group_id: String = field("0+")
    topics: list[ReadStateSummaryData] = field("0+")


class ReadStateSummaryData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class PartitionData(Struct):
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


class ReadShareGroupStateSummaryResponse(Message, versions="0-1", flexible="0+"):
    results: list[ReadStateSummaryResult] = field("0+")


class ReadStateSummaryResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("1+", default=-1)

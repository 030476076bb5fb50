"""DeleteRecords: raise the log start offset of partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, field


class DeleteRecordsRequest(Message, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")


class DeleteRecordsTopic(Struct):
    name: String = field("0+")
    partitions: list[DeleteRecordsPartition] = field("0+")


class DeleteRecordsPartition(Struct):
    partition_index: Int32 = field("0+")
    offset: Int64 = field("0+")


class DeleteRecordsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    topics: list[DeleteRecordsTopicResult] = field("0+")


class DeleteRecordsTopicResult(Struct):
    name: String = field("0+")
    partitions: list[DeleteRecordsPartitionResult] = field("0+")


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    low_watermark: Int64 = field("0+")
    error_code: Int16 = field("0+", default=0)

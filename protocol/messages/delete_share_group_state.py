"""DeleteShareGroupState: delete the persisted state of a share group's partitions."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, Uuid, field


class DeleteShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: String = field("0+")
    topics: list[DeleteStateData] = field("0+")


class DeleteStateData(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionData] = field("0+")


class PartitionData(Struct):
    partition: Int32 = field("0+")


class DeleteShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[DeleteStateResult] = field("0+")


class DeleteStateResult(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[PartitionResult] = field("0+")


class PartitionResult(Struct):
    partition: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

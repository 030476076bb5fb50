"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Message, String, Struct, field


class CreatePartitionsRequest(Message, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")
    validate_only: Bool = field("0+")


class CreatePartitionsTopic(Struct):
    name: String = field("0+")
    count: Int32 = field("0+")
    assignments: list[CreatePartitionsAssignment] | None = field("0+", nullable="0+")


class CreatePartitionsAssignment(Struct):
    broker_ids: list[Int32] = field("0+")


class CreatePartitionsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[CreatePartitionsTopicResult] = field("0+")


class CreatePartitionsTopicResult(Struct):
    name: String = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

"""AlterPartitionReassignments: move partitions to other brokers, or cancel a move."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Message, String, Struct, field


class AlterPartitionReassignmentsRequest(Message, versions="0-1", flexible="0+"):
    timeout_ms: Int32 = field("0+", default=60000)
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: list[ReassignableTopic] = field("0+")


class ReassignableTopic(Struct):
    name: String = field("0+")
    partitions: list[ReassignablePartition] = field("0+")


class ReassignablePartition(Struct):
    partition_index: Int32 = field("0+")
    replicas: list[Int32] | None = field("0+", nullable="0+", default=None)


class AlterPartitionReassignmentsResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    allow_replication_factor_change: Bool = field("1+", default=True)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: list[ReassignableTopicResponse] = field("0+")


class ReassignableTopicResponse(Struct):
    name: String = field("0+")
    partitions: list[ReassignablePartitionResponse] = field("0+")


class ReassignablePartitionResponse(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

"""ListPartitionReassignments: the partitions that are being moved."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class ListPartitionReassignmentsRequest(Message, versions="0", flexible="0+"):
    timeout_ms: Int32 = field("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field("0+", nullable="0+", default=None)


class ListPartitionReassignmentsTopics(Struct):
    name: String = field("0+")
    partition_indexes: list[Int32] = field("0+")


class ListPartitionReassignmentsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    topics: list[OngoingTopicReassignment] = field("0+")


class OngoingTopicReassignment(Struct):
    name: String = field("0+")
    partitions: list[OngoingPartitionReassignment] = field("0+")


class OngoingPartitionReassignment(Struct):
    partition_index: Int32 = field("0+")
    replicas: list[Int32] = field("0+")
    adding_replicas: list[Int32] = field("0+")
    removing_replicas: list[Int32] = field("0+")

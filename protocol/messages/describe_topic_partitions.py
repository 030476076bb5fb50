"""DescribeTopicPartitions: topics and their partitions, a page at a time."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Struct, Uuid, field


class DescribeTopicPartitionsRequest(Message, versions="0", flexible="0+"):
    topics: list[TopicRequest] = field("0+")
    response_partition_limit: Int32 = field("0+", default=2000)
    cursor: RequestCursor | None = field("0+", nullable="0+", default=None)


class TopicRequest(Struct):
    name: String = field("0+")


class RequestCursor(Struct):
    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")


class DescribeTopicPartitionsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    topics: list[DescribeTopicPartitionsResponseTopic] = field("0+")
    next_cursor: ResponseCursor | None = field("0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16 = field("0+", default=0)
    name: String | None = field("0+", nullable="0+")
    topic_id: Uuid = field("0+", default=ZERO_UUID)
    is_internal: Bool = field("0+", default=False)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field("0+")
    topic_authorized_operations: Int32 = field("0+", default=-2147483648)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16 = field("0+", default=0)
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+", default=-1)
    replica_nodes: list[Int32] = field("0+")
    isr_nodes: list[Int32] = field("0+")
    eligible_leader_replicas: list[Int32] | None = field("0+", nullable="0+", default=None)
    last_known_elr: list[Int32] | None = field("0+", nullable="0+", default=None)
    offline_replicas: list[Int32] = field("0+", default=())


class ResponseCursor(Struct):
    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")

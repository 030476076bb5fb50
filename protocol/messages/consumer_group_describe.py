"""ConsumerGroupDescribe: describe groups of the next-generation consumer protocol."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct, Uuid, field


class ConsumerGroupDescribeRequest(Message, versions="0-1", flexible="0+"):
    group_ids: list[String] = field("0+")
    include_authorized_operations: Bool = field("0+")


class ConsumerGroupDescribeResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    groups: list[DescribedGroup] = field("0+")


class DescribedGroup(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")
    assignor_name: String = field("0+")
    members: list[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-2147483648)


class Member(Struct):
    member_id: String = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: list[String] = field("0+")
    subscribed_topic_regex: String | None = field("0+", nullable="0+", default=None)
    assignment: Assignment = field("0+")
    target_assignment: Assignment = field("0+")
    member_type: Int8 = field("1+", default=-1)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field("0+")


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: list[Int32] = field("0+")

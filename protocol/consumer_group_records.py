"""The records of __consumer_offsets that groups of the consumer protocol write."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int8, Int32, Int64, Message, String, Struct, Uuid, field


class ConsumerGroupMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32 = field("0+")
    metadata_hash: Int64 = field("0+", tag=0, default=0)


class ConsumerGroupPartitionMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    """Written by Apache Kafka 4.0 and before; later versions have a hash in the group's own record instead."""

    topics: list[TopicMetadata] = field("0+")


class TopicMetadata(Struct):
    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    num_partitions: Int32 = field("0+")
    partition_metadata: list[PartitionMetadata] = field("0+")


class PartitionMetadata(Struct):
    partition: Int32 = field("0+")
    racks: list[String] = field("0+")


class ConsumerGroupMemberMetadataKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: String | None = field("0+", nullable="0+")
    rack_id: String | None = field("0+", nullable="0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: list[String] = field("0+")
    subscribed_topic_regex: String | None = field("0+", nullable="0+")
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    server_assignor: String | None = field("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field("0+", nullable="0+", tag=0)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32 = field("0+")
    supported_protocols: list[ClassicProtocol] = field("0+")


class ClassicProtocol(Struct):
    name: String = field("0+")
    metadata: Bytes = field("0+")


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32 = field("0+")
    assignment_timestamp: Int64 = field("0+", tag=0, default=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TargetTopicPartition] = field("0+")


class TargetTopicPartition(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: Int32 = field("0+")
    previous_member_epoch: Int32 = field("0+")
    state: Int8 = field("0+")
    assigned_partitions: list[CurrentTopicPartitions] = field("0+")
    partitions_pending_revocation: list[CurrentTopicPartitions] = field("0+")


class CurrentTopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")
    assignment_epochs: list[Int32] | None = field("0+", nullable="0+", tag=0, default=None)


class ConsumerGroupRegularExpressionKey(Message, versions="0"):
    group_id: String = field("0")
    regular_expression: String = field("0")


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    topics: list[String] = field("0+")
    version: Int64 = field("0+")
    timestamp: Int64 = field("0+")

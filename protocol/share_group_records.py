"""The records of __consumer_offsets that share groups write."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int32, Int64, Message, String, Struct, Uuid, field


class ShareGroupMemberMetadataKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    rack_id: String | None = field("0+", nullable="0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: list[String] = field("0+")


class ShareGroupMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32 = field("0+")
    metadata_hash: Int64 = field("0+")


class ShareGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32 = field("0+")
    assignment_timestamp: Int64 = field("0+", tag=0, default=0)


class ShareGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[ShareTopicPartitions] = field("0+")


class ShareTopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class ShareGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: Int32 = field("0+")
    previous_member_epoch: Int32 = field("0+")
    state: Int8 = field("0+")
    assigned_partitions: list[ShareTopicPartitions] = field("0+")


class ShareGroupStatePartitionMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    """Of which partitions the share coordinator has a state, or is about to have one, or to lose it."""

    initializing_topics: list[TopicPartitionsInfo] = field("0+")
    initialized_topics: list[TopicPartitionsInfo] = field("0+")
    deleting_topics: list[TopicInfo] = field("0+")


class TopicPartitionsInfo(Struct):
    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: list[Int32] = field("0+")


class TopicInfo(Struct):
    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")

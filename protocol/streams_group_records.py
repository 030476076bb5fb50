"""The records of __consumer_offsets that streams groups write."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, UInt16, field


class StreamsGroupMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class StreamsGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32 = field("0+")
    metadata_hash: Int64 = field("0+")
    validated_topology_epoch: Int32 = field("0+", tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = field("0+", nullable="0+", tag=1, default=None)


class LastAssignmentConfig(Struct):
    key: String = field("0+")
    value: String = field("0+")


class StreamsGroupMemberMetadataKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class StreamsGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: String | None = field("0+", nullable="0+")
    rack_id: String | None = field("0+", nullable="0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    topology_epoch: Int32 = field("0+")
    process_id: String = field("0+")
    user_endpoint: Endpoint | None = field("0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = field("0+")


class Endpoint(Struct):
    host: String = field("0+")
    port: UInt16 = field("0+")


class KeyValue(Struct):
    key: String = field("0+")
    value: String = field("0+")


class StreamsGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: String = field("0")


class StreamsGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32 = field("0+")
    assignment_timestamp: Int64 = field("0+", tag=0, default=0)


class StreamsGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class StreamsGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    active_tasks: list[TargetTaskIds] = field("0+")
    standby_tasks: list[TargetTaskIds] = field("0+")
    warmup_tasks: list[TargetTaskIds] = field("0+")


class TargetTaskIds(Struct):
    subtopology_id: String = field("0+")
    partitions: list[Int32] = field("0+")


class StreamsGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: String = field("0")
    member_id: String = field("0")


class StreamsGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: Int32 = field("0+")
    previous_member_epoch: Int32 = field("0+")
    state: Int8 = field("0+")
    active_tasks: list[CurrentTaskIds] = field("0+")
    standby_tasks: list[CurrentTaskIds] = field("0+")
    warmup_tasks: list[CurrentTaskIds] = field("0+")
    active_tasks_pending_revocation: list[CurrentTaskIds] = field("0+")
    standby_tasks_pending_revocation: list[CurrentTaskIds] = field("0+")
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = field("0+")


class CurrentTaskIds(Struct):
    subtopology_id: String = field("0+")
    partitions: list[Int32] = field("0+")
    assignment_epochs: list[Int32] | None = field("0+", nullable="0+", tag=0, default=None)


class StreamsGroupTopologyKey(Message, versions="0"):
    group_id: String = field("0")


class StreamsGroupTopologyValue(Message, versions="0", flexible="0+"):
    epoch: Int32 = field("0+")
    subtopologies: list[Subtopology] = field("0+")


class Subtopology(Struct):
    subtopology_id: String = field("0+")
    source_topics: list[String] = field("0+")
    source_topic_regex: list[String] = field("0+")
    state_changelog_topics: list[TopicInfo] = field("0+")
    repartition_sink_topics: list[String] = field("0+")
    repartition_source_topics: list[TopicInfo] = field("0+")
    copartition_groups: list[CopartitionGroup] = field("0+")


class TopicInfo(Struct):
    name: String = field("0+")
    partitions: Int32 = field("0+")
    replication_factor: Int16 = field("0+")
    topic_configs: list[TopicConfig] = field("0+")


class TopicConfig(Struct):
    key: String = field("0+")
    value: String = field("0+")


class CopartitionGroup(Struct):
    source_topics: list[Int16] = field("0+")
    source_topic_regex: list[Int16] = field("0+")
    repartition_source_topics: list[Int16] = field("0+")

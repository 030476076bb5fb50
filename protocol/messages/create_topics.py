"""CreateTopics: create topics."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, Message, String, Struct, Uuid, field


class CreateTopicsRequest(Message, versions="2-7", flexible="5+"):
    topics: list[CreatableTopic] = field("0+")
    timeout_ms: Int32 = field("0+", default=60000)
    validate_only: Bool = field("1+", default=False)


class CreatableTopic(Struct):
    name: String = field("0+")
    num_partitions: Int32 = field("0+")
    replication_factor: Int16 = field("0+")
    assignments: list[CreatableReplicaAssignment] = field("0+")
    configs: list[CreatableTopicConfig] = field("0+")


class CreatableReplicaAssignment(Struct):
    partition_index: Int32 = field("0+")
    broker_ids: list[Int32] = field("0+")


class CreatableTopicConfig(Struct):
    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")


class CreateTopicsResponse(Message, versions="2-7", flexible="5+"):
    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[CreatableTopicResult] = field("0+")


class CreatableTopicResult(Struct):
    name: String = field("0+")
    topic_id: Uuid = field("7+", default=ZERO_UUID)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("1+", nullable="0+", default=None)
    topic_config_error_code: Int16 = field("5+", tag=0, default=0)
    num_partitions: Int32 = field("5+", default=-1)
    replication_factor: Int16 = field("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = field("5+", nullable="5+", default=())


class CreatableTopicConfigs(Struct):
    name: String = field("5+")
    value: String | None = field("5+", nullable="5+")
    read_only: Bool = field("5+")
    config_source: Int8 = field("5+", default=-1)
    is_sensitive: Bool = field("5+")

"""Metadata: the brokers, and the topics with their partitions' leaders."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Struct, Uuid, field


class MetadataRequest(Message, versions="0-13", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = field("0+", nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10", default=False)
    include_topic_authorized_operations: Bool = field("8+", default=False)


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    name: String | None = field("0+", nullable="10+")


class MetadataResponse(Message, versions="0-13", flexible="9+"):
    throttle_time_ms: Int32 = field("3+", default=0)
    brokers: list[MetadataResponseBroker] = field("0+")
    cluster_id: String | None = field("2+", nullable="2+", default=None)
    controller_id: Int32 = field("1+", default=-1)
    topics: list[MetadataResponseTopic] = field("0+")
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0)


class MetadataResponseBroker(Struct):
    node_id: Int32 = field("0+")
    host: String = field("0+")
    port: Int32 = field("0+")
    rack: String | None = field("1+", nullable="1+", default=None)


class MetadataResponseTopic(Struct):
    error_code: Int16 = field("0+", default=0)
    name: String | None = field("0+", nullable="12+")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    is_internal: Bool = field("1+", default=False)
    partitions: list[MetadataResponsePartition] = field("0+")
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


class MetadataResponsePartition(Struct):
    error_code: Int16 = field("0+", default=0)
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("7+", default=-1)
    replica_nodes: list[Int32] = field("0+")
    isr_nodes: list[Int32] = field("0+")
    offline_replicas: list[Int32] = field("5+", default=())

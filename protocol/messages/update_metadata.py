"""UpdateMetadata: the controller tells a broker what the cluster looks like.

Versions below 5 list partitions without their topics. Only brokers older than Kafka 2.2 send them.
"""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, Int64, Message, String, Struct, Uuid, field


class UpdateMetadataRequest(Message, versions="5-8", flexible="6+"):
    controller_id: Int32 = field("5+")
    is_kraft_controller: Bool = field("8+", default=False)
    type: Int8 = field("8+", tag=0, default=0)
    controller_epoch: Int32 = field("5+")
    broker_epoch: Int64 = field("5+", default=-1)
    topic_states: list[UpdateMetadataTopicState] = field("5+")
    live_brokers: list[UpdateMetadataBroker] = field("5+")


class UpdateMetadataTopicState(Struct):
    topic_name: String = field("5+")
    topic_id: Uuid = field("7+", default=ZERO_UUID)
    partition_states: list[UpdateMetadataPartitionState] = field("5+")


class UpdateMetadataPartitionState(Struct):
    partition_index: Int32 = field("5+")
    controller_epoch: Int32 = field("5+")
    leader: Int32 = field("5+")
    leader_epoch: Int32 = field("5+")
    isr: list[Int32] = field("5+")
    zk_version: Int32 = field("5+")
    replicas: list[Int32] = field("5+")
    offline_replicas: list[Int32] = field("5+", default=())


class UpdateMetadataBroker(Struct):
    id: Int32 = field("5+")
    endpoints: list[UpdateMetadataEndpoint] = field("5+")
    rack: String | None = field("5+", nullable="5+", default=None)


class UpdateMetadataEndpoint(Struct):
    port: Int32 = field("5+")
    host: String = field("5+")
    listener: String = field("5+")
    security_protocol: Int16 = field("5+")


class UpdateMetadataResponse(Message, versions="5-8", flexible="6+"):
    error_code: Int16 = field("5+", default=0)

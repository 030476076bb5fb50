"""AlterPartition: a leader asks the controller to change its in-sync replicas."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Int64, Message, Struct, Uuid, field


class AlterPartitionRequest(Message, versions="2-3", flexible="0+"):
    broker_id: Int32 = field("2+")
    broker_epoch: Int64 = field("2+", default=-1)
    topics: list[TopicRequest] = field("2+")


class TopicRequest(Struct):
    topic_id: Uuid = field("2+")
    partitions: list[PartitionRequest] = field("2+")


class PartitionRequest(Struct):
    partition_index: Int32 = field("2+")
    leader_epoch: Int32 = field("2+")
    new_isr: list[Int32] = field("2", default=())
    new_isr_with_epochs: list[BrokerState] = field("3+", default=())
    leader_recovery_state: Int8 = field("2+", default=0)
    partition_epoch: Int32 = field("2+")


class BrokerState(Struct):
    broker_id: Int32 = field("3+")
    broker_epoch: Int64 = field("3+", default=-1)


class AlterPartitionResponse(Message, versions="2-3", flexible="0+"):
    throttle_time_ms: Int32 = field("2+", default=0)
    error_code: Int16 = field("2+", default=0)
    topics: list[TopicResponse] = field("2+", default=())


class TopicResponse(Struct):
    topic_id: Uuid = field("2+")
    partitions: list[PartitionResponse] = field("2+")


class PartitionResponse(Struct):
    partition_index: Int32 = field("2+")
    error_code: Int16 = field("2+", default=0)
    leader_id: Int32 = field("2+", default=-1)
    leader_epoch: Int32 = field("2+", default=-1)
    isr: list[Int32] = field("2+", default=())
    leader_recovery_state: Int8 = field("2+", default=0)
    partition_epoch: Int32 = field("2+", default=-1)

"""LeaderAndIsr: the controller tells a broker which partitions it leads or follows.

Versions below 2 list partitions without their topics. Only brokers older than Kafka 2.2 send them.
"""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, Int64, Message, String, Struct, Uuid, field


class LeaderAndIsrRequest(Message, versions="2-7", flexible="4+"):
    controller_id: Int32 = field("2+")
    is_kraft_controller: Bool = field("7+", default=False)
    controller_epoch: Int32 = field("2+")
    broker_epoch: Int64 = field("2+", default=-1)
    type: Int8 = field("5+", default=0)
    topic_states: list[LeaderAndIsrTopicState] = field("2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field("2+")


class LeaderAndIsrTopicState(Struct):
    topic_name: String = field("2+")
    topic_id: Uuid = field("5+", default=ZERO_UUID)
    partition_states: list[LeaderAndIsrPartitionState] = field("2+")


class LeaderAndIsrPartitionState(Struct):
    partition_index: Int32 = field("2+")
    controller_epoch: Int32 = field("2+")
    leader: Int32 = field("2+")
    leader_epoch: Int32 = field("2+")
    isr: list[Int32] = field("2+")
    partition_epoch: Int32 = field("2+")
    replicas: list[Int32] = field("2+")
    adding_replicas: list[Int32] = field("3+", default=())
    removing_replicas: list[Int32] = field("3+", default=())
    is_new: Bool = field("2+", default=False)
    leader_recovery_state: Int8 = field("6+", default=0)


class LeaderAndIsrLiveLeader(Struct):
    broker_id: Int32 = field("2+")
    host_name: String = field("2+")
    port: Int32 = field("2+")


class LeaderAndIsrResponse(Message, versions="2-7", flexible="4+"):
    error_code: Int16 = field("2+", default=0)
    partition_errors: list[LeaderAndIsrPartitionError] = field("2-4", default=())
    topics: list[LeaderAndIsrTopicError] = field("5+", default=())


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid = field("5+")
    partition_errors: list[LeaderAndIsrPartitionError] = field("5+")


class LeaderAndIsrPartitionError(Struct):
    topic_name: String = field("2-4", default="")
    partition_index: Int32 = field("2+")
    error_code: Int16 = field("2+", default=0)

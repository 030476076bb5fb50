"""StopReplica: the controller tells a broker to stop following partitions, and perhaps to delete them.

Versions below 3 do not carry leader epochs. Only brokers older than Kafka 2.6 send them.
"""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Int64, Message, String, Struct, field


class StopReplicaRequest(Message, versions="3-4", flexible="2+"):
    controller_id: Int32 = field("3+")
    is_kraft_controller: Bool = field("4+", default=False)
    controller_epoch: Int32 = field("3+")
    broker_epoch: Int64 = field("3+", default=-1)
    topic_states: list[StopReplicaTopicState] = field("3+")


class StopReplicaTopicState(Struct):
    topic_name: String = field("3+")
    partition_states: list[StopReplicaPartitionState] = field("3+")


class StopReplicaPartitionState(Struct):
    partition_index: Int32 = field("3+")
    leader_epoch: Int32 = field("3+", default=-1)
    delete_partition: Bool = field("3+")


class StopReplicaResponse(Message, versions="3-4", flexible="2+"):
    error_code: Int16 = field("3+", default=0)
    partition_errors: list[StopReplicaPartitionError] = field("3+", default=())


class StopReplicaPartitionError(Struct):
    topic_name: String = field("3+")
    partition_index: Int32 = field("3+")
    error_code: Int16 = field("3+", default=0)

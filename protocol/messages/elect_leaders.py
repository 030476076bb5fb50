"""ElectLeaders: elect partition leaders."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Message, String, Struct, field


class ElectLeadersRequest(Message, versions="0-2", flexible="2+"):
    election_type: Int8 = field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+", default=60000)


class TopicPartitions(Struct):
    topic: String = field("0+")
    partitions: list[Int32] = field("0+")


class ElectLeadersResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = field("0+")


class ReplicaElectionResult(Struct):
    topic: String = field("0+")
    partition_result: list[PartitionResult] = field("0+")


class PartitionResult(Struct):
    partition_id: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

"""DescribeQuorum: the state of the metadata quorum."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Struct, UInt16, Uuid, field


class DescribeQuorumRequest(Message, versions="0-2", flexible="0+"):
    topics: list[RequestTopicData] = field("0+")


class RequestTopicData(Struct):
    topic_name: String = field("0+")
    partitions: list[RequestPartitionData] = field("0+")


class RequestPartitionData(Struct):
    partition_index: Int32 = field("0+")


class DescribeQuorumResponse(Message, versions="0-2", flexible="0+"):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("2+", nullable="2+", default=None)
    topics: list[ResponseTopicData] = field("0+")
    nodes: list[Node] = field("2+", default=())


class ResponseTopicData(Struct):
    topic_name: String = field("0+")
    partitions: list[ResponsePartitionData] = field("0+")


class ResponsePartitionData(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("2+", nullable="2+", default=None)
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    high_watermark: Int64 = field("0+")
    current_voters: list[ReplicaState] = field("0+")
    observers: list[ReplicaState] = field("0+")


class ReplicaState(Struct):
    replica_id: Int32 = field("0+")
    replica_directory_id: Uuid = field("2+", default=ZERO_UUID)
    log_end_offset: Int64 = field("0+")
    last_fetch_timestamp: Int64 = field("1+", default=-1)
    last_caught_up_timestamp: Int64 = field("1+", default=-1)


class Node(Struct):
    node_id: Int32 = field("2+")
    listeners: list[Listener] = field("2+")


class Listener(Struct):
    name: String = field("2+")
    host: String = field("2+")
    port: UInt16 = field("2+")

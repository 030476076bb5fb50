"""Produce: append record batches to partitions."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, Records, String, Struct, Uuid, field


class ProduceRequest(Message, versions="3-13", flexible="9+"):
    transactional_id: String | None = field("3+", nullable="3+", default=None)
    acks: Int16 = field("0+")
    timeout_ms: Int32 = field("0+")
    topic_data: list[TopicProduceData] = field("0+")


class TopicProduceData(Struct):
    name: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partition_data: list[PartitionProduceData] = field("0+")


class PartitionProduceData(Struct):
    index: Int32 = field("0+")
    records: Records | None = field("0+", nullable="0+")


class ProduceResponse(Message, versions="3-13", flexible="9+"):
    responses: list[TopicProduceResponse] = field("0+")
    throttle_time_ms: Int32 = field("1+", default=0)
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0, default=())


class TopicProduceResponse(Struct):
    name: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse] = field("0+")


class PartitionProduceResponse(Struct):
    index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    base_offset: Int64 = field("0+")
    log_append_time_ms: Int64 = field("2+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", default=())
    error_message: String | None = field("8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch | None = field("10+", tag=0, default=None)


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32 = field("8+")
    batch_index_error_message: String | None = field("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


class NodeEndpoint(Struct):
    node_id: Int32 = field("10+")
    host: String = field("10+")
    port: Int32 = field("10+")
    rack: String | None = field("10+", nullable="10+", default=None)

"""Fetch: read record batches, or wait for them."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Int8, Int16, Int32, Int64, Message, Records, String, Struct, Uuid, field


class FetchRequest(Message, versions="4-18", flexible="12+"):
    cluster_id: String | None = field("12+", nullable="12+", tag=0, default=None)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState | None = field("15+", tag=1, default=None)
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("3+", default=2147483647)
    isolation_level: Int8 = field("4+", default=0)
    session_id: Int32 = field("7+", default=0)
    session_epoch: Int32 = field("7+", default=-1)
    topics: list[FetchTopic] = field("0+")
    forgotten_topics_data: list[ForgottenTopic] = field("7+", default=())
    rack_id: String = field("11+", default="")


class ReplicaState(Struct):
    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


class FetchTopic(Struct):
    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[FetchPartition] = field("0+")


class FetchPartition(Struct):
    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("9+", default=-1)
    fetch_offset: Int64 = field("0+")
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    partition_max_bytes: Int32 = field("0+")
    replica_directory_id: Uuid = field("17+", tag=0, default=ZERO_UUID)
    high_watermark: Int64 = field("18+", tag=1, default=9223372036854775807)


class ForgottenTopic(Struct):
    topic: String = field("7-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[Int32] = field("7+")


class FetchResponse(Message, versions="4-18", flexible="12+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("7+", default=0)
    session_id: Int32 = field("7+", default=0)
    responses: list[FetchableTopicResponse] = field("0+")
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0, default=())


class FetchableTopicResponse(Struct):
    topic: String = field("0-12", default="")
    topic_id: Uuid = field("13+", default=ZERO_UUID)
    partitions: list[PartitionData] = field("0+")


class PartitionData(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+", default=0)
    high_watermark: Int64 = field("0+")
    last_stable_offset: Int64 = field("4+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1)
    diverging_epoch: EpochEndOffset | None = field("12+", tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = field("12+", tag=1, default=None)
    snapshot_id: SnapshotId | None = field("12+", tag=2, default=None)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", nullable="4+", default=())
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: Records | None = field("0+", nullable="0+")


class EpochEndOffset(Struct):
    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


class SnapshotId(Struct):
    end_offset: Int64 = field("0+", default=-1)
    epoch: Int32 = field("0+", default=-1)


class AbortedTransaction(Struct):
    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")


class NodeEndpoint(Struct):
    node_id: Int32 = field("16+")
    host: String = field("16+")
    port: Int32 = field("16+")
    rack: String | None = field("16+", nullable="16+", default=None)

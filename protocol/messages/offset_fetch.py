"""OffsetFetch: the committed offsets of groups."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Int64, Message, String, Struct, Uuid, field


class OffsetFetchRequest(Message, versions="1-10", flexible="6+"):
    group_id: String = field("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7", default=())
    groups: list[OffsetFetchRequestGroup] = field("8+", default=())
    require_stable: Bool = field("7+", default=False)


class OffsetFetchRequestTopic(Struct):
    name: String = field("0-7")
    partition_indexes: list[Int32] = field("0-7")


class OffsetFetchRequestGroup(Struct):
    group_id: String = field("8+")
    member_id: String | None = field("9+", nullable="9+", default=None)
    member_epoch: Int32 = field("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field("8+", nullable="8+")


class OffsetFetchRequestTopics(Struct):
    name: String = field("8-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partition_indexes: list[Int32] = field("8+")


class OffsetFetchResponse(Message, versions="1-10", flexible="6+"):
    throttle_time_ms: Int32 = field("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = field("0-7", default=())
    error_code: Int16 = field("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = field("8+", default=())


class OffsetFetchResponseTopic(Struct):
    name: String = field("0-7")
    partitions: list[OffsetFetchResponsePartition] = field("0-7")


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32 = field("0-7")
    committed_offset: Int64 = field("0-7")
    committed_leader_epoch: Int32 = field("5-7", default=-1)
    metadata: String | None = field("0-7", nullable="0-7")
    error_code: Int16 = field("0-7", default=0)


class OffsetFetchResponseGroup(Struct):
    group_id: String = field("8+")
    topics: list[OffsetFetchResponseTopics] = field("8+")
    error_code: Int16 = field("8+", default=0)


class OffsetFetchResponseTopics(Struct):
    name: String = field("8-9", default="")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions] = field("8+")


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32 = field("8+")
    committed_offset: Int64 = field("8+")
    committed_leader_epoch: Int32 = field("8+", default=-1)
    metadata: String | None = field("8+", nullable="8+")
    error_code: Int16 = field("8+", default=0)

"""The records of __consumer_offsets that classic groups write."""

from __future__ import annotations

from barnabas.protocol.schema import ZERO_UUID, Bytes, Int32, Int64, Message, String, Struct, Uuid, field


class OffsetCommitKey(Message, versions="0"):
    group: String = field("0")
    topic: String = field("0")
    partition: Int32 = field("0")


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: Int64 = field("0+")
    leader_epoch: Int32 = field("3+", default=-1)
    metadata: String = field("0+")
    commit_timestamp: Int64 = field("0+")
    expire_timestamp: Int64 = field("1", default=-1)
    topic_id: Uuid = field("4+", tag=0, default=ZERO_UUID)


class GroupMetadataKey(Message, versions="0"):
    group: String = field("0")


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: String = field("0+")
    generation: Int32 = field("0+")
    protocol: String | None = field("0+", nullable="0+")
    leader: String | None = field("0+", nullable="0+")
    current_state_timestamp: Int64 = field("2+", default=-1)
    members: list[MemberMetadata] = field("0+")


class MemberMetadata(Struct):
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    client_id: String = field("0+")
    client_host: String = field("0+")
    rebalance_timeout: Int32 = field("1+", default=-1)
    session_timeout: Int32 = field("0+")
    subscription: Bytes = field("0+")
    assignment: Bytes = field("0+")

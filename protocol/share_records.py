"""The records of __share_group_state."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, Uuid, field


class ShareSnapshotKey(Message, versions="0"):
    group_id: String = field("0")
    topic_id: Uuid = field("0")
    partition: Int32 = field("0")


class ShareSnapshotValue(Message, versions="0", flexible="0+"):
    snapshot_epoch: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("0+", tag=0, default=-1)
    create_timestamp: Int64 = field("0+")
    write_timestamp: Int64 = field("0+")
    state_batches: list[StateBatch] = field("0+")


class ShareUpdateKey(Message, versions="0"):
    group_id: String = field("0")
    topic_id: Uuid = field("0")
    partition: Int32 = field("0")


class ShareUpdateValue(Message, versions="0", flexible="0+"):
    snapshot_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("0+", tag=0, default=-1)
    state_batches: list[StateBatch] = field("0+")


class StateBatch(Struct):
    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_state: Int8 = field("0+")
    delivery_count: Int16 = field("0+")

"""ShareGroupHeartbeat: join, stay in or leave a share group."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, Uuid, field


class ShareGroupHeartbeatRequest(Message, versions="1", flexible="0+"):
    group_id: String = field("0+")
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    rack_id: String | None = field("0+", nullable="0+", default=None)
    subscribed_topic_names: list[String] | None = field("0+", nullable="0+", default=None)


class ShareGroupHeartbeatResponse(Message, versions="1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    assignment: Assignment | None = field("0+", nullable="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field("0+")


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")

"""SyncGroup: distribute the assignments of a classic group's generation."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int16, Int32, Message, String, Struct, field


class SyncGroupRequest(Message, versions="0-5", flexible="4+"):
    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    protocol_type: String | None = field("5+", nullable="5+", default=None)
    protocol_name: String | None = field("5+", nullable="5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = field("0+")


class SyncGroupRequestAssignment(Struct):
    member_id: String = field("0+")
    assignment: Bytes = field("0+")


class SyncGroupResponse(Message, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0+", default=0)
    protocol_type: String | None = field("5+", nullable="5+", default=None)
    protocol_name: String | None = field("5+", nullable="5+", default=None)
    assignment: Bytes = field("0+")

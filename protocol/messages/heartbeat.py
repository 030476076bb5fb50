"""Heartbeat: keep a member of a classic group alive."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, field


class HeartbeatRequest(Message, versions="0-4", flexible="4+"):
    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)


class HeartbeatResponse(Message, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0+", default=0)

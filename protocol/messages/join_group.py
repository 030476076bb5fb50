"""JoinGroup: join a classic group and wait for its next generation."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Bytes, Int16, Int32, Message, String, Struct, field


class JoinGroupRequest(Message, versions="0-9", flexible="6+"):
    group_id: String = field("0+")
    session_timeout_ms: Int32 = field("0+")
    rebalance_timeout_ms: Int32 = field("1+", default=-1)
    member_id: String = field("0+")
    group_instance_id: String | None = field("5+", nullable="5+", default=None)
    protocol_type: String = field("0+")
    protocols: list[JoinGroupRequestProtocol] = field("0+")
    reason: String | None = field("8+", nullable="8+", default=None)


class JoinGroupRequestProtocol(Struct):
    name: String = field("0+")
    metadata: Bytes = field("0+")


class JoinGroupResponse(Message, versions="0-9", flexible="6+"):
    throttle_time_ms: Int32 = field("2+", default=0)
    error_code: Int16 = field("0+", default=0)
    generation_id: Int32 = field("0+", default=-1)
    protocol_type: String | None = field("7+", nullable="7+", default=None)
    protocol_name: String | None = field("0+", nullable="7+")
    leader: String = field("0+")
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = field("0+")
    members: list[JoinGroupResponseMember] = field("0+")


class JoinGroupResponseMember(Struct):
    member_id: String = field("0+")
    group_instance_id: String | None = field("5+", nullable="5+", default=None)
    metadata: Bytes = field("0+")

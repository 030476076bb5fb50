"""LeaveGroup: members leave a classic group."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class LeaveGroupRequest(Message, versions="0-5", flexible="4+"):
    group_id: String = field("0+")
    member_id: String = field("0-2", default="")
    members: list[MemberIdentity] = field("3+", default=())


class MemberIdentity(Struct):
    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    reason: String | None = field("5+", nullable="5+", default=None)


class LeaveGroupResponse(Message, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0+", default=0)
    members: list[MemberResponse] = field("3+", default=())


class MemberResponse(Struct):
    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+")
    error_code: Int16 = field("3+", default=0)

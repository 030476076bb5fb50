"""DescribeGroups: describe groups of the classic protocol, with their members."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Bytes, Int16, Int32, Message, String, Struct, field


class DescribeGroupsRequest(Message, versions="0-6", flexible="5+"):
    groups: list[String] = field("0+")
    include_authorized_operations: Bool = field("3+", default=False)


class DescribeGroupsResponse(Message, versions="0-6", flexible="5+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    groups: list[DescribedGroup] = field("0+")


class DescribedGroup(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("6+", nullable="6+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    protocol_type: String = field("0+")
    protocol_data: String = field("0+")
    members: list[DescribedGroupMember] = field("0+")
    authorized_operations: Int32 = field("3+", default=-2147483648)


class DescribedGroupMember(Struct):
    member_id: String = field("0+")
    group_instance_id: String | None = field("4+", nullable="4+", default=None)
    client_id: String = field("0+")
    client_host: String = field("0+")
    member_metadata: Bytes = field("0+")
    member_assignment: Bytes = field("0+")

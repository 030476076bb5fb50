"""ListGroups: list the groups that a broker coordinates."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class ListGroupsRequest(Message, versions="0-5", flexible="3+"):
    states_filter: list[String] = field("4+", default=())
    types_filter: list[String] = field("5+", default=())


class ListGroupsResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = field("1+", default=0)
    error_code: Int16 = field("0+", default=0)
    groups: list[ListedGroup] = field("0+")


class ListedGroup(Struct):
    group_id: String = field("0+")
    protocol_type: String = field("0+")
    group_state: String = field("4+", default="")
    group_type: String = field("5+", default="")

"""DeleteGroups: delete empty groups and their offsets."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Struct, field


class DeleteGroupsRequest(Message, versions="0-2", flexible="2+"):
    groups_names: list[String] = field("0+")


class DeleteGroupsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[DeletableGroupResult] = field("0+")


class DeletableGroupResult(Struct):
    group_id: String = field("0+")
    error_code: Int16 = field("0+", default=0)

"""DeleteAcls: remove access rules that match a filter."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Message, String, Struct, field


class DeleteAclsRequest(Message, versions="1-3", flexible="2+"):
    filters: list[DeleteAclsFilter] = field("0+")


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8 = field("0+")
    resource_name_filter: String | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: String | None = field("0+", nullable="0+")
    host_filter: String | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


class DeleteAclsResponse(Message, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    filter_results: list[DeleteAclsFilterResult] = field("0+")


class DeleteAclsFilterResult(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    matching_acls: list[DeleteAclsMatchingAcl] = field("0+")


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    pattern_type: Int8 = field("1+", default=3)
    principal: String = field("0+")
    host: String = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")

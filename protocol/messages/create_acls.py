"""CreateAcls: allow or deny operations for principals."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Message, String, Struct, field


class CreateAclsRequest(Message, versions="1-3", flexible="2+"):
    creations: list[AclCreation] = field("0+")


class AclCreation(Struct):
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    resource_pattern_type: Int8 = field("1+", default=3)
    principal: String = field("0+")
    host: String = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


class CreateAclsResponse(Message, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[AclCreationResult] = field("0+")


class AclCreationResult(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

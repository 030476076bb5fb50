"""AlterClientQuotas: set or remove the quotas of users, client ids and addresses."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Float64, Int16, Int32, Message, String, Struct, field


class AlterClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    entries: list[RequestEntryData] = field("0+")
    validate_only: Bool = field("0+")


class RequestEntryData(Struct):
    entity: list[RequestEntityData] = field("0+")
    ops: list[OpData] = field("0+")


class RequestEntityData(Struct):
    entity_type: String = field("0+")
    entity_name: String | None = field("0+", nullable="0+")


class OpData(Struct):
    key: String = field("0+")
    value: Float64 = field("0+")
    remove: Bool = field("0+")


class AlterClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    entries: list[ResponseEntryData] = field("0+")


class ResponseEntryData(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    entity: list[ResponseEntityData] = field("0+")


class ResponseEntityData(Struct):
    entity_type: String = field("0+")
    entity_name: String | None = field("0+", nullable="0+")

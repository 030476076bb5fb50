"""DescribeClientQuotas: list quotas that match a filter."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Float64, Int8, Int16, Int32, Message, String, Struct, field


class DescribeClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    components: list[ComponentData] = field("0+")
    strict: Bool = field("0+")


class ComponentData(Struct):
    entity_type: String = field("0+")
    match_type: Int8 = field("0+")
    match: String | None = field("0+", nullable="0+")


class DescribeClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    entries: list[EntryData] | None = field("0+", nullable="0+")


class EntryData(Struct):
    entity: list[EntityData] = field("0+")
    values: list[ValueData] = field("0+")


class EntityData(Struct):
    entity_type: String = field("0+")
    entity_name: String | None = field("0+", nullable="0+")


class ValueData(Struct):
    key: String = field("0+")
    value: Float64 = field("0+")

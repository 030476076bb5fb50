"""AlterConfigs: replace all settings of a resource."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct, field


class AlterConfigsRequest(Message, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")


class AlterConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: list[AlterableConfig] = field("0+")


class AlterableConfig(Struct):
    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")


class AlterConfigsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    responses: list[AlterConfigsResourceResponse] = field("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")

"""IncrementalAlterConfigs: change individual settings of resources."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct, field


class IncrementalAlterConfigsRequest(Message, versions="0-1", flexible="1+"):
    resources: list[AlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")


class AlterConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: list[AlterableConfig] = field("0+")


class AlterableConfig(Struct):
    name: String = field("0+")
    config_operation: Int8 = field("0+")
    value: String | None = field("0+", nullable="0+")


class IncrementalAlterConfigsResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    responses: list[AlterConfigsResourceResponse] = field("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")

"""ListConfigResources: the resources that have settings."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Message, String, Struct, field


class ListConfigResourcesRequest(Message, versions="0-1", flexible="0+"):
    resource_types: list[Int8] = field("1+", default=())


class ListConfigResourcesResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    config_resources: list[ConfigResource] = field("0+")


class ConfigResource(Struct):
    resource_name: String = field("0+")
    resource_type: Int8 = field("1+", default=16)

"""DescribeConfigs: the settings of resources, and the source of each."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct, field


class DescribeConfigsRequest(Message, versions="1-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = field("0+")
    include_synonyms: Bool = field("1+", default=False)
    include_documentation: Bool = field("3+", default=False)


class DescribeConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configuration_keys: list[String] | None = field("0+", nullable="0+")


class DescribeConfigsResponse(Message, versions="1-4", flexible="4+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[DescribeConfigsResult] = field("0+")


class DescribeConfigsResult(Struct):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: list[DescribeConfigsResourceResult] = field("0+")


class DescribeConfigsResourceResult(Struct):
    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")
    read_only: Bool = field("0+")
    config_source: Int8 = field("1+", default=-1)
    is_sensitive: Bool = field("0+")
    synonyms: list[DescribeConfigsSynonym] = field("1+", default=())
    config_type: Int8 = field("3+", default=0)
    documentation: String | None = field("3+", nullable="0+", default="")


class DescribeConfigsSynonym(Struct):
    name: String = field("1+")
    value: String | None = field("1+", nullable="0+")
    source: Int8 = field("1+")

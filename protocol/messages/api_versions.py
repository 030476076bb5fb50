"""ApiVersions: which requests a broker serves, in which versions. A client's first question."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Int64, Message, String, Struct, field


class ApiVersionsRequest(Message, versions="0-4", flexible="3+"):
    client_software_name: String = field("3+", default="")
    client_software_version: String = field("3+", default="")


class ApiVersionsResponse(Message, versions="0-4", flexible="3+"):
    error_code: Int16 = field("0+", default=0)
    api_keys: list[ApiVersion] = field("0+")
    throttle_time_ms: Int32 = field("1+", default=0)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, default=())
    finalized_features_epoch: Int64 = field("3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, default=())
    zk_migration_ready: Bool = field("3+", tag=3, default=False)


class ApiVersion(Struct):
    api_key: Int16 = field("0+")
    min_version: Int16 = field("0+")
    max_version: Int16 = field("0+")


class SupportedFeatureKey(Struct):
    name: String = field("3+")
    min_version: Int16 = field("3+")
    max_version: Int16 = field("3+")


class FinalizedFeatureKey(Struct):
    name: String = field("3+")
    max_version_level: Int16 = field("3+")
    min_version_level: Int16 = field("3+")

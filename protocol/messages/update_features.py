"""UpdateFeatures: raise or lower the finalised level of features."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int8, Int16, Int32, Message, String, Struct, field


class UpdateFeaturesRequest(Message, versions="0-2", flexible="0+"):
    timeout_ms: Int32 = field("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field("0+")
    validate_only: Bool = field("1+", default=False)


class FeatureUpdateKey(Struct):
    feature: String = field("0+")
    max_version_level: Int16 = field("0+")
    allow_downgrade: Bool = field("0", default=False)
    upgrade_type: Int8 = field("1+", default=1)


class UpdateFeaturesResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    results: list[UpdatableFeatureResult] = field("0-1", default=())


class UpdatableFeatureResult(Struct):
    feature: String = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

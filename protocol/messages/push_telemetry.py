"""PushTelemetry: push a client's metrics."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Bytes, Int8, Int16, Int32, Message, Uuid, field


class PushTelemetryRequest(Message, versions="0", flexible="0+"):
    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    terminating: Bool = field("0+")
    compression_type: Int8 = field("0+")
    metrics: Bytes = field("0+")


class PushTelemetryResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)

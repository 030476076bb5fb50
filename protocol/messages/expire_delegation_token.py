"""ExpireDelegationToken: change when a delegation token expires."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int16, Int32, Int64, Message, field


class ExpireDelegationTokenRequest(Message, versions="1-2", flexible="2+"):
    hmac: Bytes = field("0+")
    expiry_time_period_ms: Int64 = field("0+")


class ExpireDelegationTokenResponse(Message, versions="1-2", flexible="2+"):
    error_code: Int16 = field("0+", default=0)
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)

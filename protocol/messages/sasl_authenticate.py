"""SaslAuthenticate: one step of a SASL exchange."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int16, Int64, Message, String, field


class SaslAuthenticateRequest(Message, versions="0-2", flexible="2+"):
    auth_bytes: Bytes = field("0+")


class SaslAuthenticateResponse(Message, versions="0-2", flexible="2+"):
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    auth_bytes: Bytes = field("0+")
    session_lifetime_ms: Int64 = field("1+", default=0)

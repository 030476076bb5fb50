"""SaslHandshake: choose a SASL mechanism."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Message, String, field


class SaslHandshakeRequest(Message, versions="0-1"):
    mechanism: String = field("0+")


class SaslHandshakeResponse(Message, versions="0-1"):
    error_code: Int16 = field("0+", default=0)
    mechanisms: list[String] = field("0+")

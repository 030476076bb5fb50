"""The headers of requests and responses."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, field


class RequestHeader(Message, versions="1-2", flexible="2+"):
    request_api_key: Int16 = field("0+")
    request_api_version: Int16 = field("0+")
    correlation_id: Int32 = field("0+")
    # Never compact, so that a broker can read it before it knows whether it supports the version.
    client_id: String | None = field("1+", nullable="1+", compactable=False, default=None)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: Int32 = field("0+")

"""UnregisterBroker: remove a broker that is gone."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, field


class UnregisterBrokerRequest(Message, versions="0", flexible="0+"):
    broker_id: Int32 = field("0+")


class UnregisterBrokerResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)

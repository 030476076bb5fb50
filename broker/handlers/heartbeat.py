"""Heartbeat (key 12): a member of a classic group says that it is alive, and learns whether it must join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=broker.groups.heartbeat(message))

"""WriteShareGroupState (key 85): what leaders have delivered of share partitions.

Brokers send it to the share coordinator. Each partition has its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    return await broker.share_coordinator.write(message)

"""ReadShareGroupState (key 84): the state of share partitions, for their new leaders.

Brokers send it to the share coordinator. Each partition has its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request, message: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    return await broker.share_coordinator.read(message)

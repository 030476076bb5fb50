"""DeleteShareGroupState (key 86): forget share partitions.

Brokers send it to the share coordinator. Each partition has its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    return await broker.share_coordinator.delete(message)

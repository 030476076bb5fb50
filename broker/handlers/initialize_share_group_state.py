"""InitializeShareGroupState (key 83): begin to keep the state of share partitions.

Brokers send it to the share coordinator. Each partition has its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    return await broker.share_coordinator.initialize(message)

"""ReadShareGroupStateSummary (key 87): where share partitions start.

Brokers send it to the share coordinator. Each partition has its own result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    return await broker.share_coordinator.read_summary(message)

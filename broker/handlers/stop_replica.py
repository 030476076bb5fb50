"""StopReplica (key 5): the controller stops replicas on this broker, and may delete them.

Answered when no start of this broker will find what was deleted. The controller's own broker calls `handle` without a
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request | None, message: StopReplicaRequest) -> StopReplicaResponse:
    if request is not None and broker.replicas.order_sequence.is_overtaken(message, request.correlation_id):
        return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    return await broker.replicas.stop_replicas(message)

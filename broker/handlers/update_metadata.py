"""UpdateMetadata (key 6): the controller tells this broker what the cluster looks like.

The controller's own broker calls `handle` without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request | None, message: UpdateMetadataRequest) -> UpdateMetadataResponse:
    if request is not None and broker.replicas.order_sequence.is_overtaken(message, request.correlation_id):
        return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    error = broker.replicas.check_sender(message.controller_epoch, message.broker_epoch)
    if not error:
        broker.cluster.update(message)
        broker.peers.cluster_changed()
    return UpdateMetadataResponse(error_code=error)

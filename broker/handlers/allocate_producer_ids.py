"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids that nobody else gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request | None, message: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    """`request` is None if the controller's own broker asks."""
    term = broker.controller.term
    if term is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    error, start, length = await term.allocate_producer_ids(message.broker_id, message.broker_epoch)
    return AllocateProducerIdsResponse(error_code=error, producer_id_start=start, producer_id_len=length)

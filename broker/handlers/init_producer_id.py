"""InitProducerId (key 22): an id and epoch for an idempotent producer.

A producer without a transactional id gets a new id at epoch 0, whatever it had before. From version 3 it may name the
id and epoch that it has, but not one without the other; that matters to transactional ones only. Version 6 is not yet
stable and not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
        return _error(ErrorCode.INVALID_REQUEST)
    if message.transactional_id is not None:
        # There is no transaction coordinator.
        return _error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)


def _error(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)

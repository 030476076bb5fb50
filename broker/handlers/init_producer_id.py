"""InitProducerId (key 22): an id and epoch for an idempotent or transactional producer.

A producer without a transactional id gets a new id at epoch 0, whatever it had before. One with a transactional id gets
that one's producer id with the next epoch, and whoever had it before is fenced; what that has left open is aborted
first. From version 3 a producer may name the id and epoch that it has, but not one without the other: it goes on after
an error, unless another has come meanwhile. Up to version 3 a fenced one is told INVALID_PRODUCER_EPOCH. Version 6
(two-phase commit) is not stable in Kafka and not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse | None:
    if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH)
    if message.transactional_id is None:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)

    def answer(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        if error == ErrorCode.PRODUCER_FENCED and request.version < 4:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        request.answer(InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=producer_epoch))

    await broker.transactions.init_producer_id(
        message.transactional_id,
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        answer,
    )
    return None

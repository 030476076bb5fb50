"""InitProducerId (key 22): an id and epoch for an idempotent or transactional producer.

A producer without a transactional id gets a new id at epoch 0, whatever it had before. One with a transactional id gets
that id's producer id with the next epoch, and the previous owner is fenced; its open transaction is aborted first. From
version 3 a producer may name both the id and the epoch that it has, to continue after an error unless another producer
has started meanwhile. Up to version 3 a fenced one gets INVALID_PRODUCER_EPOCH. Version 6 (two-phase commit) is not
stable in Kafka and not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.request import Request
from barnabas.broker.transaction.producer_ids import ProducerIdsUnavailable
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse | None:
    denied = _denial(request.access, message.transactional_id)
    if denied:
        return InitProducerIdResponse(error_code=denied, producer_epoch=NO_PRODUCER_EPOCH)
    if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH)
    try:
        return await _init(broker, request, message)
    except ProducerIdsUnavailable:  # clients retry
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)


def _denial(access: Access, transactional_id: str | None) -> ErrorCode:
    """Why a client may not have a producer id. Without a transactional id, a client that may write to any topic may
    have one."""
    if transactional_id is not None:
        allowed = access.transactional_id(AclOperation.WRITE, transactional_id)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allowed = access.cluster(AclOperation.IDEMPOTENT_WRITE) or access.some(AclOperation.WRITE, ResourceType.TOPIC)
    return ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def _init(broker: Broker, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse | None:
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

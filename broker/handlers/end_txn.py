"""EndTxn (key 26): commit or abort a producer's transaction.

From version 5 the producer also gets a new epoch (KIP-890), or a new id when its epochs are used up, and it may abort a
transaction that it has not started. Up to version 1 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.broker.server.request import Request
from barnabas.broker.transaction.producer_ids import ProducerIdsUnavailable
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: EndTxnRequest) -> Coroutine[Any, Any, None] | None:
    if not request.access.transactional_id(AclOperation.WRITE, message.transactional_id):
        request.answer(EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return None
    return None if _end(broker, request, message, None) else _end_with_new_id(broker, request, message)


async def _end_with_new_id(broker: Broker, request: Request, message: EndTxnRequest) -> None:
    try:
        new_producer_id = await broker.producer_ids.next()
    except ProducerIdsUnavailable:  # clients retry
        request.answer(EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    _end(broker, request, message, new_producer_id)


def _end(broker: Broker, request: Request, message: EndTxnRequest, new_producer_id: int | None) -> bool:
    version = request.version

    def answer(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        if error == ErrorCode.PRODUCER_FENCED and version < 2:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        request.answer(EndTxnResponse(error_code=error, producer_id=producer_id, producer_epoch=producer_epoch))

    return broker.transactions.end_transaction(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        message.committed,
        2 if version >= 5 else 0,
        answer,
        new_producer_id,
    )

"""EndTxn (key 26): commit or abort a producer's transaction.

From version 5 the producer gets a new epoch with it (KIP-890), or a new id when the epochs of its own are used up; and
it may abort what it has not begun. Up to version 1 a fenced producer is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: EndTxnRequest) -> Coroutine[Any, Any, None] | None:
    return None if _end(broker, request, message, None) else _end_with_new_id(broker, request, message)


async def _end_with_new_id(broker: Broker, request: Request, message: EndTxnRequest) -> None:
    _end(broker, request, message, await broker.producer_ids.next())


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

"""AddOffsetsToTxn (key 25): the offsets of a consumer group become part of a producer's transaction.

What is added is the partition of __consumer_offsets that the group belongs to. Up to version 1 a fenced producer is
told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.internal_topics import CONSUMER_OFFSETS
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: AddOffsetsToTxnRequest) -> None:
    def done(error: ErrorCode) -> None:
        if error == ErrorCode.PRODUCER_FENCED and request.version < 2:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        request.answer(AddOffsetsToTxnResponse(error_code=error))

    broker.transactions.add_partitions(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        ((CONSUMER_OFFSETS, broker.groups.partition_of(message.group_id)),),
        done,
        client_version=0,
    )

"""AddOffsetsToTxn (key 25): the offsets of a consumer group become part of a producer's transaction.

The group's partition of __consumer_offsets is added. Up to version 1 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: AddOffsetsToTxnRequest) -> None:
    def done(error: ErrorCode) -> None:
        if error == ErrorCode.PRODUCER_FENCED and request.version < 2:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        request.answer(AddOffsetsToTxnResponse(error_code=error))

    if not request.access.transactional_id(AclOperation.WRITE, message.transactional_id):
        return done(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.access.group(AclOperation.READ, message.group_id):
        return done(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    broker.transactions.add_partitions(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        (TopicPartition(CONSUMER_OFFSETS, broker.groups.partition_of(message.group_id)),),
        done,
        client_version=0,
    )

"""DescribeTransactions (key 65): what the coordinator knows about transactional ids.

An id that is named twice is answered twice, as by Kafka.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps, each, once
from barnabas.broker.server.request import Request
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse | None]:
    describe = once(partial(_describe, broker, request.access))
    ids = message.transactional_ids
    response = DescribeTransactionsResponse(transaction_states=(yield from each(describe, ids)))
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.transactions, ids, response, again)


def _describe(broker: Broker, access: Access, transactional_id: str) -> TransactionState:
    found: TransactionMetadata | ErrorCode = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if access.transactional_id(AclOperation.DESCRIBE, transactional_id):
        found = broker.transactions.describe(transactional_id)
    if isinstance(found, ErrorCode):
        return TransactionState(
            error_code=found,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=[index for _, index in partitions])
            for topic, partitions in groupby(sorted(found.partitions), key=itemgetter(0))
            if access.topic(AclOperation.DESCRIBE, topic)
        ],
    )

"""DescribeTransactions (key 65): what the coordinator knows of transactional ids."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=[_describe(broker, id) for id in message.transactional_ids])


def _describe(broker: Broker, transactional_id: str) -> TransactionState:
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
        ],
    )

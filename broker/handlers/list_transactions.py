"""ListTransactions (key 66): the transactional ids that this broker coordinates.

They can be filtered by state and producer id; from version 1 by how long ago their transaction began, from version 2 by
a pattern that the whole id must match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.patterns import InvalidPattern, matcher
from broker.server.request import Request
from broker.transaction.states import BY_LABEL
from protocol.errors import ErrorCode
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: ListTransactionsRequest) -> ListTransactionsResponse:
    unknown = [label for label in message.state_filters if label not in BY_LABEL]
    found = broker.transactions.all_transactions()
    if isinstance(found, ErrorCode):
        return ListTransactionsResponse(error_code=found, unknown_state_filters=unknown, transaction_states=[])
    matches: Callable[[str], bool] = _any
    if message.transactional_id_pattern:
        try:
            matches = matcher(message.transactional_id_pattern)
        except InvalidPattern:
            return ListTransactionsResponse(
                error_code=ErrorCode.INVALID_REGULAR_EXPRESSION, unknown_state_filters=[], transaction_states=[]
            )
    labels = set(message.state_filters)
    producer_ids = set(message.producer_id_filters)
    started_before = None if message.duration_filter < 0 else broker.clock.now_ms() - message.duration_filter
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in found
            if (not labels or each.state.label in labels)
            and (not producer_ids or each.producer_id in producer_ids)
            and (started_before is None or each.start_ms < started_before)
            and matches(each.transactional_id)
        ],
    )


def _any(transactional_id: str) -> bool:
    return True

"""ListTransactions (key 66): the transactional ids that this broker coordinates.

They can be filtered by state and producer id; from version 1 by how long ago their transaction began, from version 2 by
a pattern that the whole id must match.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.patterns import InvalidPattern, matcher
from barnabas.broker.server.freeing import LongList
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.broker.transaction.states import BY_LABEL
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: ListTransactionsRequest
) -> Steps[ListTransactionsResponse | None]:
    labels: dict[str, None] = {}
    unknown = LongList()
    for label in message.state_filters:
        labels[label] = None
        if label not in BY_LABEL:
            unknown.append(label)
        yield
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
    producer_ids = set(message.producer_id_filters)
    started_before = None if message.duration_filter < 0 else broker.clock.now_ms() - message.duration_filter
    access = request.access
    states = []
    for each in list(found):
        if (
            (not labels or each.state.label in labels)
            and (not producer_ids or each.producer_id in producer_ids)
            and (started_before is None or each.start_ms < started_before)
            and matches(each.transactional_id)
            and access.transactional_id(AclOperation.DESCRIBE, each.transactional_id)
        ):
            states.append(
                TransactionState(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.label,
                )
            )
        yield
    response = ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=states)
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.transactions, None, response, again)


def _any(transactional_id: str) -> bool:
    return True

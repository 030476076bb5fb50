"""ListTransactions: list the transactions that a broker coordinates."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Int64, Message, String, Struct, field


class ListTransactionsRequest(Message, versions="0-2", flexible="0+"):
    state_filters: list[String] = field("0+")
    producer_id_filters: list[Int64] = field("0+")
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", nullable="2+", default=None)


class ListTransactionsResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    unknown_state_filters: list[String] = field("0+")
    transaction_states: list[TransactionState] = field("0+")


class TransactionState(Struct):
    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    transaction_state: String = field("0+")

"""Cases of producers and transactions."""

from barnabas.client.requests import admin, transactions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.integration.access.case import Case

CASES: dict[str, Case] = {
    "InitProducerId": Case(
        ApiKey.INIT_PRODUCER_ID,
        [0, 4],
        lambda side, version: transactions.init_producer_id(None),
        ["idempotent_write cluster"],
        [
            ["write topic t"],
            ["read topic t"],
            ["write topic t*"],
            ["write topic *"],
            ["write topic t", "deny write topic t"],
            ["write topic t", "deny write topic *"],
            ["write topic tt", "deny write topic t*"],
            ["write topic t*", "deny write topic tt*"],
            ["write topic t*", "deny write topic t"],
            ["all topic t"],
        ],
    ),
    "InitProducerId with a transactional id": Case(
        ApiKey.INIT_PRODUCER_ID,
        [0, 4],
        lambda side, version: transactions.init_producer_id("bad", timeout_ms=-1),
        ["write transactional_id bad"],
        [["describe transactional_id bad"], ["idempotent_write cluster"]],
    ),
    "AddPartitionsToTxn": Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        [0, 3],
        lambda side, version: transactions.add_partitions_to_txn(version, "none", 9, 0, ("t", 0), ("u", 0)),
        ["write transactional_id none", "write topic t", "write topic u"],
    ),
    "AddPartitionsToTxn by brokers": Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        [4, 5],
        lambda side, version: transactions.add_partitions_to_txn(version, "none", 9, 0, ("t", 0), ("u", 0)),
        ["cluster_action cluster"],
        [["write transactional_id none", "write topic t", "write topic u"]],
    ),
    "AddOffsetsToTxn": Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        [0, 4],
        lambda side, version: transactions.add_offsets_to_txn("none", 9, 0, "g"),
        ["write transactional_id none", "read group g"],
    ),
    "EndTxn": Case(
        ApiKey.END_TXN,
        [0, 5],
        lambda side, version: transactions.end_txn("none", 9, 0, commit=True),
        ["write transactional_id none"],
    ),
    "TxnOffsetCommit": Case(
        ApiKey.TXN_OFFSET_COMMIT,
        [0, 3],
        lambda side, version: transactions.txn_offset_commit("none", "g", 9, 0, ("t", 0, 1), ("absent", 0, 1)),
        ["write transactional_id none", "read group g", "read topic absent"],
    ),
    "WriteTxnMarkers": Case(
        ApiKey.WRITE_TXN_MARKERS,
        [1],
        lambda side, version: transactions.write_txn_markers(9, 0, ("absent", 0)),
        ["cluster_action cluster"],
        [["alter cluster"], ["describe cluster"]],
    ),
    "DescribeTransactions": Case(
        ApiKey.DESCRIBE_TRANSACTIONS,
        [0],
        lambda side, version: DescribeTransactionsRequest(transactional_ids=["x", "none"]),
        ["describe transactional_id x", "describe transactional_id none"],
        [["write transactional_id x"]],
    ),
    "ListTransactions": Case(
        ApiKey.LIST_TRANSACTIONS,
        [0, 1],
        lambda side, version: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        ["describe transactional_id x"],
        [["describe cluster"]],
    ),
    "DescribeProducers": Case(
        ApiKey.DESCRIBE_PRODUCERS,
        [0],
        lambda side, version: admin.describe_producers(("t", [0]), ("absent", [0]), ("no name", [0])),
        ["read topic t", "read topic absent"],
        [["describe topic t"]],
    ),
}

"""A client of transactions that speaks to a real broker over a socket."""

from __future__ import annotations

from contextlib import asynccontextmanager

from barnabas.client.requests.lookup import TRANSACTION, find_coordinator
from barnabas.client.requests.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    transaction_to_add,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.server.harness import Client, connected, frame
from tests.support.running_broker import create_topic, running

ID = "orders"


class TransactionClient:
    """Asks in the newest version of every request, unless told otherwise. Its transactional id is "orders"."""

    def __init__(self, broker, client: Client) -> None:
        self.broker = broker
        self.client = client

    def send(self, key, message, version):
        self.client.send(frame(key, message, version))

    async def ask(self, key, message, version):
        self.send(key, message, version)
        return (await self.client.answer(key, version))[1]

    async def find_coordinator(self):
        request = find_coordinator(4, ID, key_type=TRANSACTION)
        (found,) = (await self.ask(ApiKey.FIND_COORDINATOR, request, 4)).coordinators
        return found.error_code

    async def init(self, transactional_id=ID, expected=(-1, -1), *, timeout_ms=60_000, version=5):
        """(error, producer id, epoch)"""
        request = init_producer_id(transactional_id, *expected, timeout_ms)
        answer = await self.ask(ApiKey.INIT_PRODUCER_ID, request, version)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    async def add(self, producer, *partitions, transactional_id=ID, version=3, verify_only=False):
        """The errors, partition by partition."""
        answer = await self.ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            add_request(version, (transactional_id, producer, partitions, verify_only)),
            version,
        )
        results = answer.results_by_topic_v3_and_below
        if version >= 4:
            (result,) = answer.results_by_transaction
            assert result.transactional_id == transactional_id
            results = result.topic_results
        return {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in results
            for each in topic.results_by_partition
        }

    async def add_offsets(self, producer, group="g", *, transactional_id=ID, version=4):
        request = add_offsets_to_txn(transactional_id, *producer, group)
        return (await self.ask(ApiKey.ADD_OFFSETS_TO_TXN, request, version)).error_code

    async def end(self, producer, commit=True, *, transactional_id=ID, version=5):
        """(error, producer id, epoch)"""
        answer = await self.ask(ApiKey.END_TXN, end_request(producer, commit, transactional_id), version)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    async def describe(self, *transactional_ids):
        request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids or (ID,)))
        return (await self.ask(ApiKey.DESCRIBE_TRANSACTIONS, request, 0)).transaction_states

    async def state(self, transactional_id=ID):
        return (await self.describe(transactional_id))[0].transaction_state

    async def list(self, version=2, **filters):
        request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})
        return await self.ask(ApiKey.LIST_TRANSACTIONS, request, version)

    async def begin_transaction(self, *partitions, transactional_id=ID, version=5):
        """A producer with a transaction under way: its id and epoch."""
        error, *producer = await self.init(transactional_id)
        assert error == ErrorCode.NONE
        added = await self.add(
            producer, *(partitions or (("t", 0),)), transactional_id=transactional_id, version=version
        )
        assert set(added.values()) == {ErrorCode.NONE}
        return tuple(producer)


def add_request(version, *transactions):
    """Each as (transactional id, (producer id, epoch), partitions, verify only)."""
    if version >= 4:
        return AddPartitionsToTxnRequest(
            transactions=[
                transaction_to_add(transactional_id, *producer, *partitions, verify_only=verify_only)
                for transactional_id, producer, partitions, verify_only in transactions
            ]
        )
    ((transactional_id, producer, partitions, _),) = transactions
    return add_partitions_to_txn(version, transactional_id, *producer, *partitions)


def end_request(producer, commit=True, transactional_id=ID):
    return end_txn(transactional_id, *producer, commit=commit)


@asynccontextmanager
async def transaction_client(broker):
    async with connected(broker.server) as client:
        client = TransactionClient(broker, client)
        assert await client.find_coordinator() == ErrorCode.NONE
        while (await client.describe())[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass  # as a client does: it retries
        yield client


@asynccontextmanager
async def coordinating(folder, **settings):
    """A broker with a topic "t" of three partitions that coordinates transactions, and a client of it."""
    few = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}
    async with running(folder, **{**few, **settings}) as broker:
        await create_topic(broker, "t", partitions=3)
        async with transaction_client(broker) as client:
            yield client

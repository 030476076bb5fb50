"""DescribeTransactions, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.client import coordinating
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path, clock=ManualClock(now_ms=5000)) as client:
        yield client


async def test_all_fields_of_a_transaction(client):
    producer_id, epoch = await client.begin_transaction(("t", 2), ("t", 0))
    (found,) = await client.describe("orders")
    assert (found.error_code, found.transactional_id, found.transaction_state) == (ErrorCode.NONE, "orders", "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (60_000, 5000)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 2])]


async def test_an_id_without_a_transaction(client):
    await client.init()
    (found,) = await client.describe("orders")
    assert (found.transaction_state, found.transaction_start_time_ms, found.topics) == ("Empty", -1, [])


async def test_an_id_that_is_named_twice_is_described_twice(client):
    """As by Apache Kafka, which tests/integration/transactions compares."""
    found = await client.describe("orders", "orders")
    assert [each.transactional_id for each in found] == ["orders", "orders"]


async def test_several_are_described_each_by_itself(client):
    await client.init()
    found = await client.describe("unknown", "orders", "")
    assert [(each.transactional_id, each.error_code) for each in found] == [
        ("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("orders", ErrorCode.NONE),
        ("", ErrorCode.INVALID_REQUEST),
    ]

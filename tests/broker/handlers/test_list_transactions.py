"""ListTransactions, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.broker.transaction.coordinator import TransactionCoordinator
from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.client import coordinating
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def client(tmp_path):
    """Of three ids, one is idle, one has a transaction that began a minute ago, one has ended a younger one."""
    clock = ManualClock()
    async with coordinating(tmp_path, clock=clock, transaction_state_log_num_partitions=3) as client:
        await client.init("idle")
        await client.begin_transaction(transactional_id="open")
        clock.advance(30)
        producer = await client.begin_transaction(transactional_id="ended")
        await client.end(producer, transactional_id="ended")
        clock.advance(30)
        yield client


async def ids(client, version=2, **filters):
    answer = await client.list(version, **filters)
    assert answer.error_code == ErrorCode.NONE
    return {each.transactional_id for each in answer.transaction_states}


@pytest.mark.parametrize("version", range(3))
async def test_every_version_lists_all(client, version):
    answer = await client.list(version)
    assert {each.transactional_id: each.transaction_state for each in answer.transaction_states} == {
        "idle": "Empty",
        "open": "Ongoing",
        "ended": "CompleteCommit",
    }
    (open_one,) = await client.describe("open")
    assert open_one.producer_id in {each.producer_id for each in answer.transaction_states}


@pytest.mark.parametrize("version", range(3))
async def test_by_state(client, version):
    assert await ids(client, version, state_filters=["Ongoing", "Empty"]) == {"idle", "open"}
    answer = await client.list(version, state_filters=["ongoing", "Dead"])
    assert answer.unknown_state_filters == ["ongoing"]
    assert answer.transaction_states == []  # a filter that is unknown lets nothing through


@pytest.mark.parametrize("version", range(3))
async def test_by_producer(client, version):
    (open_one,) = await client.describe("open")
    assert await ids(client, version, producer_id_filters=[open_one.producer_id, 12345]) == {"open"}


@pytest.mark.parametrize("version", [1, 2])
async def test_by_how_long_ago_it_began(client, version):
    """An id without a transaction counts as the oldest, as in Kafka."""
    assert await ids(client, version, duration_filter=45_000) == {"idle", "open"}
    assert await ids(client, version, duration_filter=60_000) == {"idle"}
    assert await ids(client, version, duration_filter=-7) == {"idle", "open", "ended"}


async def test_by_a_pattern(client):
    assert await ids(client, transactional_id_pattern="id.*|ended") == {"idle", "ended"}
    assert await ids(client, transactional_id_pattern="ende") == set()  # it matches the whole id or nothing
    assert await ids(client, transactional_id_pattern="") == {"idle", "open", "ended"}
    answer = await client.list(transactional_id_pattern="(", state_filters=["unknown"])
    assert (answer.error_code, answer.unknown_state_filters) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


async def test_while_transactions_are_loaded_the_list_is_not_complete(client, monkeypatch):
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    monkeypatch.setattr(TransactionCoordinator, "all_transactions", lambda self: loading)
    answer = await client.list()
    assert (answer.error_code, answer.transaction_states) == (loading, [])

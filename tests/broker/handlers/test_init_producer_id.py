"""InitProducerId, as seen by a client of a real broker over a socket."""

import asyncio

import pytest

from barnabas.client.requests.transactions import init_producer_id
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.broker.transaction.client import coordinating
from tests.support.running_broker import running

VERSIONS = range(6)


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


async def ask(client, version=5, **fields):
    request = init_producer_id(None, **fields)
    answer = await client.ask(ApiKey.INIT_PRODUCER_ID, request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


async def test_every_version_gives_a_new_id_in_epoch_0(client):
    answers = [await ask(client, version) for version in VERSIONS]
    assert [(error, epoch) for error, _, epoch in answers] == [(ErrorCode.NONE, 0)] * len(VERSIONS)
    assert len({producer_id for _, producer_id, _ in answers}) == len(VERSIONS)


async def test_clients_that_ask_at_once_get_different_ones(broker):
    async def one():
        async with connected(broker.server) as client:
            return (await ask(client))[1]

    ids = await asyncio.gather(*(one() for _ in range(20)))
    assert len(set(ids)) == 20


async def test_what_a_producer_had_before_does_not_matter(client):
    _, first, _ = await ask(client)
    error, second, epoch = await ask(client, producer_id=first, producer_epoch=5)
    assert (error, epoch) == (ErrorCode.NONE, 0)
    assert second != first


@pytest.mark.parametrize("had", [{"producer_id": 5}, {"producer_epoch": 5}])
async def test_an_id_without_an_epoch_or_the_other_way_round_is_refused(client, had):
    assert await ask(client, **had) == (ErrorCode.INVALID_REQUEST, -1, -1)


async def test_after_a_restart_no_id_is_reused(tmp_path):
    ids = []
    for _ in range(3):
        async with running(tmp_path) as broker, connected(broker.server) as client:
            ids += [(await ask(client))[1] for _ in range(3)]
    assert len(set(ids)) == 9


# --- with a transactional id ---


@pytest.fixture
async def transactional(tmp_path):
    async with coordinating(tmp_path, transaction_max_timeout_ms=70_000) as client:
        yield client


async def test_every_version_gives_the_next_epoch_of_the_same_producer(transactional):
    answers = [await transactional.init(version=version) for version in VERSIONS]
    producer_id = answers[0][1]
    assert answers == [(ErrorCode.NONE, producer_id, epoch) for epoch in range(len(VERSIONS))]


async def test_what_the_producer_before_left_open_is_aborted(transactional):
    """Where Kafka answers CONCURRENT_TRANSACTIONS and lets the client come again, the abort is done at once here."""
    producer_id, epoch = await transactional.begin_transaction()
    assert await transactional.init() == (ErrorCode.NONE, producer_id, epoch + 2)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_from_version_3_a_producer_may_continue_unless_another_has_started(transactional, version):
    _, producer_id, epoch = await transactional.init()
    had = producer_id, epoch
    assert await transactional.init(expected=had, version=version) == (ErrorCode.NONE, producer_id, epoch + 1)
    assert await transactional.init(expected=had, version=version) == (ErrorCode.NONE, producer_id, epoch + 1)
    await transactional.init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 4 else ErrorCode.PRODUCER_FENCED
    assert await transactional.init(expected=had, version=version) == (fenced, -1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 70_001, 2**31 - 1])
async def test_an_invalid_timeout(transactional, timeout_ms):
    assert await transactional.init(timeout_ms=timeout_ms) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1, -1)
    assert (await transactional.init(timeout_ms=70_000))[0] == ErrorCode.NONE


async def test_an_empty_transactional_id_counts_as_none(transactional):
    assert await transactional.init("") == (ErrorCode.INVALID_REQUEST, -1, -1)


async def test_the_longest_transactional_id(transactional):
    longest = "ä" * 16_383
    assert (await transactional.init(longest))[0] == ErrorCode.NONE
    assert await transactional.state(longest) == "Empty"


async def test_without_the_topic_of_transactions_there_is_no_coordinator(client):
    request = init_producer_id("orders")
    answer = await client.ask(ApiKey.INIT_PRODUCER_ID, request, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.NOT_COORDINATOR, -1, -1)

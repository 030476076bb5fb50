"""AddPartitionsToTxn, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.client import ID, add_request, coordinating

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", range(6))
async def test_every_version_starts_a_transaction(client, version):
    _, *producer = await client.init()
    assert await client.add(producer, T0, T1, version=version) == {T0: ErrorCode.NONE, T1: ErrorCode.NONE}
    (found,) = await client.describe()
    assert found.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 1])]
    assert await client.add(producer, T0, version=version) == {T0: ErrorCode.NONE}


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("missing", [("nowhere", 0), ("t", 3), ("t", -1)])
async def test_if_one_partition_does_not_exist_none_is_added(client, version, missing):
    _, *producer = await client.init()
    assert await client.add(producer, T0, missing, version=version) == {
        T0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await client.state() == "Empty"


@pytest.mark.parametrize("version", range(6))
async def test_a_fenced_producer(client, version):
    _, *producer = await client.init()
    await client.init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert await client.add(producer, T0, version=version) == {T0: fenced}


async def test_an_id_that_is_unknown_or_empty_or_of_another_producer(client):
    _, producer_id, epoch = await client.init()
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await client.add((producer_id, epoch), T0, transactional_id="unknown") == {T0: unknown}
    assert await client.add((producer_id + 1, epoch), T0) == {T0: unknown}
    assert await client.add((producer_id, epoch), T0, transactional_id="") == {T0: ErrorCode.INVALID_REQUEST}


async def test_a_client_may_not_add_the_brokers_own_topics(client):
    _, *producer = await client.init()
    offsets, state = ("__consumer_offsets", 0), ("__transaction_state", 0)
    await client.broker.groups.ensure_topic()
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert await client.add(producer, offsets, version=3) == {offsets: refused}
    assert await client.add(producer, offsets, version=4) == {offsets: ErrorCode.NONE}
    for version in (3, 4):  # not even a broker may: the end of such a transaction would be written to this topic
        assert await client.add(producer, state, version=version) == {state: refused}


@pytest.mark.parametrize("version", [4, 5])
async def test_a_broker_may_only_verify(client, version):
    producer_id, epoch = producer = await client.begin_transaction(T0)
    verify = {"version": version, "verify_only": True}
    assert await client.add(producer, T0, T1, **verify) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert await client.add((producer_id, epoch + 1), T0, **verify) == {T0: ErrorCode.PRODUCER_FENCED}
    assert await client.add(producer, ("t", 9), **verify) == {("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    (found,) = await client.describe()
    assert [topic.partitions for topic in found.topics] == [[0]]


@pytest.mark.parametrize("version", [4, 5])
async def test_several_transactions_in_one_request(client, version):
    _, *orders = await client.init(ID)
    _, *other = await client.init("other")
    request = add_request(
        version,
        (ID, orders, [T0], False),
        ("unknown", orders, [T0], False),
        ("other", other, [T0, ("t", 9)], False),
        (ID, orders, [T1], True),
    )
    answer = await client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
    assert answer.error_code == ErrorCode.NONE
    assert [
        (result.transactional_id, [each.partition_error_code for each in result.topic_results[0].results_by_partition])
        for result in answer.results_by_transaction
    ] == [
        (ID, [ErrorCode.NONE]),
        ("unknown", [ErrorCode.INVALID_PRODUCER_ID_MAPPING]),
        ("other", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        (ID, [ErrorCode.TRANSACTION_ABORTABLE]),
    ]


@pytest.mark.parametrize("version", [4, 5])
async def test_without_transactions_there_is_nothing_to_do(client, version):
    answer = await client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, add_request(version), version)
    assert answer.results_by_transaction == []

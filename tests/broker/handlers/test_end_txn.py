"""EndTxn, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.broker.transaction.records import transaction_record
from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.client import ID, coordinating


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
async def test_every_version_ends_a_transaction(client, version, commit):
    producer_id, epoch = producer = await client.begin_transaction()
    answer = await client.end(producer, commit, version=version)
    # From version 5 the producer is told its next epoch.
    assert answer == ((ErrorCode.NONE, producer_id, epoch + 1) if version == 5 else (ErrorCode.NONE, -1, -1))
    assert await client.state() == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize("version", range(6))
async def test_a_repeated_request_gets_the_same_answer(client, version):
    producer = await client.begin_transaction()
    first = await client.end(producer, version=version)
    assert await client.end(producer, version=version) == first
    assert (await client.end(producer, False, version=version))[0] == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", range(6))
async def test_a_fenced_producer(client, version):
    producer = await client.begin_transaction()
    await client.init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert await client.end(producer, version=version) == (fenced, -1, -1)


async def test_a_transaction_that_was_not_started_can_be_aborted_from_version_5(client):
    _, producer_id, epoch = await client.init()
    producer = producer_id, epoch
    assert (await client.end(producer, False, version=4))[0] == ErrorCode.INVALID_TXN_STATE
    assert (await client.end(producer, True))[0] == ErrorCode.INVALID_TXN_STATE
    assert await client.end(producer, False) == (ErrorCode.NONE, producer_id, epoch + 1)


async def test_an_id_that_is_unknown_or_empty_or_of_another_producer(client):
    producer_id, epoch = producer = await client.begin_transaction()
    assert (await client.end(producer, transactional_id="x"))[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (await client.end((producer_id + 1, epoch)))[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (await client.end(producer, transactional_id=""))[0] == ErrorCode.INVALID_REQUEST
    assert await client.state() == "Ongoing"


async def test_with_its_last_epoch_a_producer_gets_a_new_id(client):
    producer_id, _ = await client.begin_transaction()
    transactions = client.broker.transactions
    _, shard = transactions._runtime.shard_of(ID)
    shard.replay(transaction_record(transactions.describe(ID)._replace(producer_epoch=32766)).read)
    error, new_id, epoch = await client.end((producer_id, 32766))
    assert (error, epoch) == (ErrorCode.NONE, 0)
    assert new_id > producer_id
    assert await client.end((producer_id, 32766)) == (ErrorCode.NONE, new_id, 0)  # asked for again
    assert await client.add((new_id, 0), ("t", 0), version=5) == {("t", 0): ErrorCode.NONE}

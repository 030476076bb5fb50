"""OffsetForLeaderEpoch, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.data import offset_for_leader_epoch, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import ProduceResponse
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import create_topic, partition, running

UNKNOWN = (-1, -1)


@pytest.fixture
async def broker(tmp_path):
    """Its partition was led in epoch 0 up to offset 2, in epoch 3 up to 3, and has nothing yet of epoch 5."""
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker)
        for epoch, values in ((0, [b"a", b"b"]), (3, [b"c"])):
            partition(broker).lead(epoch)
            response = await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(*values))), 12)
            assert isinstance(response, ProduceResponse)
        partition(broker).lead(5)
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


async def ask(client, epoch, *, topic="t", index=0, current=-1, version=4):
    request = offset_for_leader_epoch((topic, index, epoch), current_leader_epoch=current)
    response = await client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, version)
    (answered,) = response.topics
    (answer,) = answered.partitions
    assert (answered.topic, answer.partition) == (topic, index)
    return answer.error_code, (answer.leader_epoch, answer.end_offset)


async def test_every_version_says_where_an_epoch_ends(client):
    for version in (2, 3, 4):
        assert await ask(client, 0, version=version) == (ErrorCode.NONE, (0, 2))


async def test_an_epoch_without_records_ends_where_the_one_before_it_does(client):
    assert await ask(client, 1) == (ErrorCode.NONE, (0, 2))
    assert await ask(client, 3) == (ErrorCode.NONE, (3, 3))
    assert await ask(client, 4) == (ErrorCode.NONE, (3, 3))


async def test_the_latest_epoch_ends_with_the_log(client):
    assert await ask(client, 5) == (ErrorCode.NONE, (5, 3))


async def test_an_epoch_to_come_is_unknown(client):
    assert await ask(client, 6) == (ErrorCode.NONE, UNKNOWN)
    assert await ask(client, -1) == (ErrorCode.NONE, UNKNOWN)


async def test_a_client_may_expect_another_leader_epoch(client):
    assert await ask(client, 0, current=5) == (ErrorCode.NONE, (0, 2))
    assert await ask(client, 0, current=4) == (ErrorCode.FENCED_LEADER_EPOCH, UNKNOWN)
    assert await ask(client, 0, current=6) == (ErrorCode.UNKNOWN_LEADER_EPOCH, UNKNOWN)


async def test_partitions_that_do_not_exist(client):
    assert await ask(client, 0, topic="unknown") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
    assert await ask(client, 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
    assert await ask(client, 0, index=-1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)


async def test_only_the_leader_answers(broker, client):
    partition(broker).follow(9, 6)
    assert await ask(client, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN)
    assert await ask(client, 0, current=5) == (ErrorCode.FENCED_LEADER_EPOCH, UNKNOWN)

"""AddOffsetsToTxn, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.transaction.client import coordinating


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path, offsets_topic_num_partitions=5) as client:
        yield client


@pytest.mark.parametrize("version", range(5))
async def test_every_version_adds_the_partition_of_the_group(client, version):
    """Also before the topic exists: it will have as many partitions as the setting says."""
    _, *producer = await client.init()
    assert await client.add_offsets(producer, "test-group", version=version) == ErrorCode.NONE
    (found,) = await client.describe()
    # "test-group".hashCode() is 627841412.
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("__consumer_offsets", [627841412 % 5])]
    assert found.transaction_state == "Ongoing"


@pytest.mark.parametrize("version", range(5))
async def test_a_fenced_producer(client, version):
    _, *producer = await client.init()
    await client.init()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert await client.add_offsets(producer, version=version) == fenced


async def test_an_id_that_is_unknown_or_empty(client):
    _, *producer = await client.init()
    assert await client.add_offsets(producer, transactional_id="x") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await client.add_offsets(producer, transactional_id="") == ErrorCode.INVALID_REQUEST

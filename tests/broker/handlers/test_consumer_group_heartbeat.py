"""ConsumerGroupHeartbeat, as seen by a client of a real broker over a socket."""

import pytest

from barnabas.client.requests.groups import consumer_group_heartbeat
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating, group_client
from tests.support.running_broker import create_topic, running


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        yield client


async def beat(client, member, epoch, version=1, **fields):
    request = consumer_group_heartbeat("g", member, epoch, **fields)
    return await client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, version)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_member_joins_stays_and_leaves(client, version):
    joined = await beat(client, "a", 0, version, topics=["t"])
    assert (joined.error_code, joined.member_epoch, joined.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 5000)
    (assigned,) = joined.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (client.broker.cluster.topic("t").topic_id, [0, 1, 2])
    assert (await beat(client, "a", 2, version)).assignment is None
    assert await client.commit(("t", 0, 5), member="a", generation=2) == [ErrorCode.NONE]
    assert await client.commit(("t", 0, 5), member="a", generation=3) == [ErrorCode.STALE_MEMBER_EPOCH]
    left = await beat(client, "a", -1, version)
    assert (left.member_id, left.member_epoch) == ("a", -1)


async def test_a_new_topic_is_assigned_with_the_next_heartbeat(client):
    client.broker.config.set_dynamic({"group.consumer.assignment.interval.ms": "0"}, {})
    await beat(client, "a", 0, topics=["t", "later"])
    await create_topic(client.broker, "later")
    answer = await beat(client, "a", 2, owned={client.broker.cluster.topic("t").topic_id: [0, 1, 2]})
    assert answer.member_epoch == 3
    assert len(answer.assignment.topic_partitions) == 2


async def test_a_group_is_there_after_a_restart(tmp_path):
    async with coordinating(tmp_path) as client:
        await beat(client, "a", 0, topics=["t"])
    async with running(tmp_path) as broker, group_client(broker) as client:
        while (answer := await beat(client, "a", 2)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)


async def test_the_protocol_can_be_switched_off(tmp_path):
    async with coordinating(tmp_path, group_coordinator_rebalance_protocols="classic") as client:
        assert (await beat(client, "a", 0, topics=["t"])).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_beside_kafka_3_9_there_are_no_consumer_groups(tmp_path):
    async with coordinating(tmp_path, inter_broker_protocol_version="3.9") as client:
        assert (await beat(client, "a", 0, topics=["t"])).error_code == ErrorCode.UNSUPPORTED_VERSION

"""ShareGroupHeartbeat and the other requests of share groups, as seen by a client of a real broker over a socket."""

from types import SimpleNamespace

import pytest

from barnabas.broker.testing.state import groups
from barnabas.client.requests import share_groups, shares
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating, group_client
from tests.support.running_broker import running


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path, group_share_assignment_interval_ms=0) as client:
        yield client


async def beat(client, member, epoch, topics=None, **fields):
    request = share_groups.share_group_heartbeat("g", member, epoch, topics, **fields)
    return await client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, request, 1)


async def offsets(client, topics=None):
    request = share_groups.describe_share_group_offsets({"g": topics})
    (found,) = (await client.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request, 1)).groups
    return {(t.topic_name, p.partition_index): p.start_offset for t in found.topics for p in t.partitions}


async def settled(client, member="a"):
    """The epoch of a member that has the three partitions of its topic."""
    answer = await beat(client, member, 0, ["t"])
    while not answer.assignment.topic_partitions:
        answer = await beat(client, member, answer.member_epoch, ["t"])
    (assigned,) = answer.assignment.topic_partitions
    assert assigned.partitions == [0, 1, 2]
    return answer.member_epoch


async def test_a_member_joins_stays_and_leaves(client):
    epoch = await settled(client)
    assert (await beat(client, "a", epoch)).assignment is None
    answer = await client.ask(ApiKey.SHARE_GROUP_DESCRIBE, share_groups.share_group_describe("g"), 1)
    (found,) = answer.groups
    assert (found.group_state, found.assignor_name, len(found.members)) == ("Stable", "simple", 1)
    assert await offsets(client) == {("t", index): -1 for index in range(3)}
    left = await beat(client, "a", -1)
    assert (left.member_id, left.member_epoch) == ("a", -1)


async def test_a_group_is_there_after_a_restart(tmp_path):
    async with coordinating(tmp_path, group_share_assignment_interval_ms=0) as client:
        epoch = await settled(client)
    async with running(tmp_path) as broker, group_client(broker) as client:
        while (answer := await beat(client, "a", epoch)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, epoch)


async def test_offsets_that_nobody_can_have(client):
    """Apache Kafka does not answer this."""
    assert await offsets(client, {"t": [0, 7]}) == {("t", 0): -1, ("t", 7): -1}


async def test_beside_kafka_3_9_there_are_no_share_groups(tmp_path):
    async with coordinating(tmp_path, inter_broker_protocol_version="3.9") as client:
        assert (await beat(client, "a", 0, ["t"])).error_code == ErrorCode.UNSUPPORTED_VERSION
        for key, request in (
            (ApiKey.ALTER_SHARE_GROUP_OFFSETS, share_groups.alter_share_group_offsets("g", ("t", 0, 0))),
            (ApiKey.DELETE_SHARE_GROUP_OFFSETS, share_groups.delete_share_group_offsets("g", "t")),
        ):
            assert (await client.ask(key, request, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION
        for key, request in (
            (ApiKey.SHARE_FETCH, shares.share_fetch("g", "a", 0)),
            (ApiKey.SHARE_ACKNOWLEDGE, shares.share_acknowledge("g", "a", 1)),
        ):
            assert (await client.ask(key, request, 2)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_the_state_shows_it(client):
    epoch = await settled(client)
    found = groups(SimpleNamespace(brokers=[client.broker]))["g"]
    assert (found["type"], found["state"], found["initialized"]) == ("share", "Stable", {"t": [0, 1, 2]})
    (member,) = found["members"]
    assert (member["member_epoch"], member["assignment"]) == (epoch, {"t": [0, 1, 2]})

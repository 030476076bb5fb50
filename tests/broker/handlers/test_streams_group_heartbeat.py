"""StreamsGroupHeartbeat, as seen by a client of a real broker over a socket."""

import asyncio

import pytest

from barnabas.broker.group.streams.statuses import StatusCode
from barnabas.client.requests.streams import streams_group_heartbeat, subtopology, topic_info, topology
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating, group_client
from tests.support.running_broker import running

SIMPLE = topology(subtopology("0", "t"))


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path, group_streams_assignment_interval_ms=0) as client:
        yield client


async def beat(client, member, epoch, **fields):
    request = streams_group_heartbeat("g", member, epoch, **fields)
    return await client.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, request, 0)


async def test_a_member_joins_stays_and_leaves(client):
    joined = await beat(client, "a", 0, topology=SIMPLE)
    assert (joined.error_code, joined.member_epoch, joined.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 5000)
    assert [(each.subtopology_id, each.partitions) for each in joined.active_tasks] == [("0", [0, 1, 2])]
    assert (await beat(client, "a", 2)).active_tasks is None
    assert await client.commit(("t", 0, 5), member="a", generation=2) == [ErrorCode.NONE]
    assert await client.commit(("t", 0, 5), member="a", generation=3) == [ErrorCode.STALE_MEMBER_EPOCH]
    left = await beat(client, "a", -1)
    assert (left.member_id, left.member_epoch) == ("a", -1)


async def test_own_topics_are_created_with_their_settings(client):
    changelog = topic_info("log", configs=[("cleanup.policy", "compact")])
    flow = topology(
        subtopology("0", "t", sinks=["wide"]),
        subtopology("1", repartition=[topic_info("wide", 5)], changelogs=[changelog]),
    )
    answer = await beat(client, "a", 0, topology=flow)
    assert [status.status_code for status in answer.status] == [StatusCode.MISSING_INTERNAL_TOPICS]
    while answer.status:
        answer = await beat(client, "a", answer.member_epoch, active={})
    tasks = {each.subtopology_id: each.partitions for each in answer.active_tasks}
    assert tasks == {"0": [0, 1, 2], "1": [0, 1, 2, 3, 4]}
    cluster = client.broker.cluster
    assert len(cluster.topic("wide").partitions) == len(cluster.topic("log").partitions) == 5
    assert client.broker.config_follower.topic_configs("log") == {"cleanup.policy": "compact"}


async def test_why_a_topic_cannot_be_created_is_told(client):
    flow = topology(subtopology("0", "t", changelogs=[topic_info("log", configs=[("cleanup.policy", "wish")])]))
    answer = await beat(client, "a", 0, topology=flow)
    while "Creation failed: log (" not in answer.status[0].status_detail:
        answer = await beat(client, "a", 2)
    assert client.broker.cluster.topic("log") is None


async def test_topics_are_created_once(client, monkeypatch):
    asked, goes_on = [], asyncio.Event()

    async def create(topics):
        asked.append([topic.name for topic in topics])
        await goes_on.wait()
        return []

    monkeypatch.setattr(client.broker.streams_topics, "_create", create)
    flow = topology(subtopology("0", "t", changelogs=["log"]))
    await beat(client, "a", 0, topology=flow)
    await beat(client, "a", 2)
    assert asked == [["log"]]
    goes_on.set()


@pytest.mark.parametrize(
    "wrong",
    [
        topology(subtopology("0", "t", changelogs=["__consumer_offsets"])),
        topology(subtopology("0", "t", sinks=["no name"])),
    ],
)
async def test_topics_that_no_application_may_have(client, wrong):
    assert (await beat(client, "a", 0, topology=wrong)).error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY


async def test_a_topology_that_no_record_can_hold(client):
    changelogs = [topic_info(f"log-{index:05}", configs=[("note", "x" * 200)]) for index in range(6000)]
    answer = await beat(client, "a", 0, topology=topology(subtopology("0", "t", changelogs=changelogs)))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await beat(client, "a", 0, topology=SIMPLE)).error_code == ErrorCode.NONE


async def test_a_group_is_there_after_a_restart(tmp_path):
    async with coordinating(tmp_path) as client:
        await beat(client, "a", 0, topology=SIMPLE)
    async with running(tmp_path) as broker, group_client(broker) as client:
        while (answer := await beat(client, "a", 2)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize(
    "off", [{"group_coordinator_rebalance_protocols": "classic,consumer"}, {"inter_broker_protocol_version": "3.9"}]
)
async def test_the_protocol_can_be_switched_off_and_is_off_beside_kafka_3_9(tmp_path, off):
    async with coordinating(tmp_path, **off) as client:
        assert (await beat(client, "a", 0, topology=SIMPLE)).error_code == ErrorCode.UNSUPPORTED_VERSION

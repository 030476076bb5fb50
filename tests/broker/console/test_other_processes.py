"""What a console shows of partitions that brokers of other processes have: what it knows, and what it does not."""

import asyncio
import json
from dataclasses import replace

import pytest

from barnabas.broker.console.lags import LagHistory
from barnabas.broker.controller.images import BrokerImage, Endpoint, PartitionImage
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.console.test_api import commit
from tests.support.running_broker import cluster_of

FAR = PartitionImage(1, (7, 8), leader_id=7, leader_epoch=4, isr_nodes=(7,))


@pytest.fixture
async def split(console):
    """A topic with two messages in partition 0, and with partition 1 on broker 7, which is another process."""
    await console.broker.groups.ensure_topic()
    await console.topic("t", 1, [b"a", b"b"])
    cluster = console.broker.cluster
    cluster.brokers[7] = BrokerImage(7, (Endpoint("PLAINTEXT", "PLAINTEXT", "far.example", 9092),))
    image = cluster.topics["t"]
    cluster.topics["t"] = replace(image, partitions=(*image.partitions, FAR))
    return console


async def test_which_brokers_it_does_not_speak_for(split):
    _, told = await split.get("/api/overview")
    assert told["other_brokers"] == [{"id": 7, "address": "far.example:9092"}]


async def test_a_topic_with_what_the_controller_says_of_the_rest(split):
    _, told = await split.get("/api/topics")
    (row,) = told["rows"]
    assert (row["partitions"], row["elsewhere"], row["messages"], row["under_replicated"]) == (2, 1, 2, 1)
    _, told = await split.get("/api/topic", name="t")
    here, far = told["partition_list"]
    assert "elsewhere" not in here
    assert far == {
        **{"partition": 1, "leader": 7, "replicas": [7, 8], "isr": [7], "leader_epoch": 4},
        "elsewhere": True,
    }


async def test_messages_that_are_here_and_who_has_the_others(split):
    far = [{"partition": 1, "leader": 7}]
    for query in ({}, {"offset": "0"}):
        _, found = await split.get("/api/messages", topic="t", **query)
        assert (len(found["records"]), found["elsewhere"]) == (2, far)
        _, found = await split.get("/api/messages", topic="t", partition="1", **query)
        assert (found["records"], found["cursor"], found["elsewhere"]) == ([], None, far)
        _, found = await split.get("/api/messages", topic="t", partition="0", **query)
        assert (len(found["records"]), found["elsewhere"]) == (2, [])
    status, told = await split.get("/api/message", topic="t", partition="1", offset="0")
    assert (status, told["error"]) == (404, "partition 1 is led by a broker elsewhere")


async def test_a_tail_says_first_what_it_cannot_show(split):
    async with split.session.get(f"{split.url}/api/tail", params={"topic": "t"}) as stream:
        first = json.loads((await stream.content.readline()).removeprefix(b"data: "))
    assert first == {"records": [], "skipped": 0, "elsewhere": [{"partition": 1, "leader": 7}]}


async def test_the_lag_of_a_group_is_that_of_what_is_here(split):
    await commit(split, offset=0)
    done = asyncio.get_running_loop().create_future()
    committed = CommittedOffset(5, -1, "", 0, -1, split.broker.cluster.topic("t").topic_id)
    split.broker.groups.commit(
        "castle", Committer("", None, -1), [(TopicPartition("t", 1), committed)], done.set_result
    )
    assert not await done
    _, told = await split.get("/api/group", name="castle")
    assert (told["lag"], told["elsewhere"]) == (2, 1)
    assert [row["lag"] for row in told["offsets"]] == [2, None]
    lags = LagHistory(cluster_of(split.broker))
    await lags.look()
    assert lags.of("castle", lambda topic: True)["messages"] == [2]

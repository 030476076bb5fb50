"""How far groups have come that do not commit offsets: share groups."""

import asyncio

import pytest

from barnabas.broker.share.key import SharePartitionKey
from barnabas.client.requests.share_groups import share_group_heartbeat
from barnabas.client.requests.shares import write_share_group_state
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey

MEMBER = "bjnSGXQBSKKvmUxG-FR0dQ"


@pytest.fixture
async def sharing(console):
    """A member of the share group "sharers" has both partitions of a topic with ten records in the first."""
    await console.topic("t", 2, [b"x"] * 10)
    await console.broker.groups.ensure_topic()
    await console.broker.share_coordinator.ensure_topic()
    with Wire("127.0.0.1", console.broker.server.listeners[0].port) as wire:

        async def ask(key, message, version):
            return await asyncio.to_thread(wire.ask, key, message, version)

        console.ask = ask
        epoch = 0
        while not await _has_begun(console):
            answer = await ask(ApiKey.SHARE_GROUP_HEARTBEAT, share_group_heartbeat("sharers", MEMBER, epoch, ["t"]), 1)
            epoch = answer.member_epoch if not answer.error_code else epoch
        yield console


async def _has_begun(console):
    _, told = await console.get("/api/group", name="sharers")
    return bool(told.get("member_list") and told["offsets"] and told["member_list"][0]["assignment"])


async def test_where_a_share_group_begins_is_not_known_before_somebody_fetches(sharing):
    _, told = await sharing.get("/api/group", name="sharers")
    assert [(row["topic"], row["partition"], row["offset"], row["lag"]) for row in told["offsets"]] == [
        ("t", 0, None, None),
        ("t", 1, None, None),
    ]
    assert told["lag"] is None
    _, groups = await sharing.get("/api/groups")
    assert (groups["rows"][0]["lag"], groups["rows"][0]["topics"]) == (None, ["t"])
    _, topic = await sharing.get("/api/topic", name="t")
    assert topic["group_list"] == ["sharers"]


async def test_the_lag_of_a_share_group_is_what_it_is_not_done_with(sharing):
    """As DescribeShareGroupOffsets tells it."""
    place = (sharing.broker.cluster.topic("t").topic_id, 0)
    shards = sharing.broker.share_coordinator.shards.values()
    (state,) = filter(None, (shard.snapshot(SharePartitionKey("sharers", *place)) for shard in shards))
    fields = {"start_offset": 3, "delivery_complete_count": 2}
    write = write_share_group_state("sharers", place, state_epoch=state.state_epoch, **fields)
    answer = await sharing.ask(ApiKey.WRITE_SHARE_GROUP_STATE, write, 1)
    assert not answer.results[0].partitions[0].error_code
    _, told = await sharing.get("/api/group", name="sharers")
    first, second = told["offsets"]
    assert (first["offset"], first["lag"]) == (3, 10 - 3 - 2)
    assert first["late_ms"] > 0
    assert second["lag"] is None
    assert told["lag"] == 5
    lags = sharing.console._api.lags
    await lags.look()
    assert lags.of("sharers", lambda topic: True)["messages"][-1] == 5


async def test_the_console_does_not_offer_to_move_what_a_share_group_has_not_committed(sharing):
    _, told = await sharing.get("/api/group", name="sharers")
    assert told["may"]["read"] is False

"""The console's API: views, messages, and changes where they are allowed."""

import asyncio
import json

import pytest

from barnabas.broker.console import messages
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.records.builder import NewRecord
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.console.conftest import next_news
from tests.support.running_broker import delete_topic, partition


async def values(console, **query):
    status, found = await console.get("/api/messages", topic="t", **query)
    assert status == 200, found
    return [record["value"]["text"] for record in found["records"]], found["cursor"]


async def commit(console, group="castle", offset=1, topic="t", partitions=1):
    """A group that has committed an offset of each partition, and has no members."""
    groups = console.broker.groups
    await groups.ensure_topic()
    done = asyncio.get_running_loop().create_future()
    committed = CommittedOffset(offset, -1, "", 0, -1, console.broker.cluster.topic(topic).topic_id)
    groups.commit(
        group,
        Committer("", None, -1),
        [(TopicPartition(topic, index), committed) for index in range(partitions)],
        done.set_result,
    )
    assert not await done


# --- views ---


async def test_the_overview(console):
    await console.topic("orders", 3, [b"x", b"y"])
    _, told = await console.get("/api/overview")
    assert (told["topics"], told["partitions"], told["groups"], told["connections"]) == (1, 3, 0, 0)
    assert told["traffic"]["messages_in"] == 2
    assert told["writes"] is False
    assert told["brokers"][0]["controller"]


async def test_topics_come_in_pages_and_can_be_searched(console):
    for number in range(60):
        await console.topic(f"orders-{number:02}")
    _, first = await console.get("/api/topics")
    assert (first["total"], first["pages"], len(first["rows"])) == (60, 2, 50)
    _, second = await console.get("/api/topics", page="1")
    assert [row["name"] for row in second["rows"]] == [f"orders-{number}" for number in range(50, 60)]
    _, found = await console.get("/api/topics", search="ORDERS-07")
    assert [row["name"] for row in found["rows"]] == ["orders-07"]
    assert (await console.get("/api/topics", page="minus"))[0] == 400


async def test_a_topic_with_its_partitions_settings_and_files(console):
    await console.topic("t", 2, [b"x"])
    _, told = await console.get("/api/topic", name="t", segments="0")
    assert [row["high_watermark"] for row in told["partition_list"]] == [1, 0]
    assert told["segments"]["files"][0]["path"].endswith("00000000000000000000.log")
    settings = {entry["name"]: entry for entry in told["configs"]}
    assert settings["cleanup.policy"]["source"] == "DEFAULT_CONFIG"
    assert (await console.get("/api/topic", name="no"))[0] == 404


async def test_a_group_with_its_lag(console):
    await console.topic("t", 1, [b"a", b"b", b"c"])
    await commit(console)
    _, rows = await console.get("/api/groups")
    assert [(row["name"], row["lag"], row["state"]) for row in rows["rows"]] == [("castle", 2, "Empty")]
    _, told = await console.get("/api/group", name="castle")
    assert told["offsets"][0]["lag"] == 2
    assert told["ends"] == {"t/0": [0, 3]}
    assert (await console.get("/api/group", name="no"))[0] == 404


async def test_of_a_group_with_many_partitions_a_page_is_told_and_the_lag_of_all(console):
    await console.topic("t", 120, [b"a", b"b"])
    console.write("t", b"c", index=119)
    await commit(console, offset=0, partitions=120)
    _, told = await console.get("/api/group", name="castle", page="2")
    assert [row["partition"] for row in told["offsets"]] == list(range(100, 120))
    assert (told["page"], told["pages"], told["partitions"], told["lag"]) == (2, 3, 120, 3)
    assert told["ends"].keys() == {f"t/{index}" for index in range(100, 120)}


async def test_views_are_watched_in_one_stream_and_only_news_is_sent(console):
    await console.topic("t")
    watch = json.dumps({"a": {"view": "topics"}, "b": {"view": "groups"}})
    async with console.session.get(f"{console.url}/api/live", params={"watch": watch}) as stream:
        assert stream.content_type == "text/event-stream"
        first = json.loads((await stream.content.readline()).removeprefix(b"data: "))
        assert first.keys() == {"a", "b"}
        console.write("t", b"news")
        await stream.content.readline()
        second = json.loads((await stream.content.readline()).removeprefix(b"data: "))
        assert second.keys() == {"a"}
        assert second["a"]["rows"][0]["messages"] == 1
    assert (await console.get("/api/live", watch='{"a":{"view":"no"}}'))[0] == 404
    assert (await console.get("/api/live", watch="nonsense"))[0] == 400


# --- messages ---


async def test_the_newest_messages_first_and_older_ones_on_request(console):
    await console.topic("t", 1, [NewRecord(n, None, str(n).encode()) for n in range(9)])
    found, cursor = await values(console, limit="4")
    assert found == ["8", "7", "6", "5"]
    found, cursor = await values(console, limit="4", cursor=cursor)
    assert found == ["4", "3", "2", "1"]
    found, cursor = await values(console, limit="4", cursor=cursor)
    assert found == ["0"]
    assert cursor is None


async def test_the_newest_of_several_partitions_are_merged_by_their_time(console):
    await console.topic("t", 2)
    for time in range(6):
        console.write("t", NewRecord(time, None, str(time).encode()), index=time % 2)
    found, cursor = await values(console, limit="3")
    assert found == ["5", "4", "3"]
    assert (await values(console, limit="3", cursor=cursor))[0] == ["2", "1", "0"]
    assert (await values(console, partition="1"))[0] == ["5", "3", "1"]


@pytest.mark.parametrize("start", [{}, {"offset": "0"}], ids=["newest first", "from an offset"])
async def test_no_message_is_left_out_or_shown_twice_whatever_its_timestamp(console, start):
    """Producers choose timestamps: within a partition they may go back."""
    await console.topic("t", 2)
    written = set()
    for number in range(20):
        name = f"{number % 2}/{number // 2}"
        written.add(name)
        console.write("t", NewRecord((number * 7) % 20 * 1000, None, name.encode()), index=number % 2)
    seen, cursor = await values(console, limit="3", **start)
    for _ in range(6):
        found, cursor = await values(console, limit="3", cursor=cursor, **start)
        seen += found
    assert cursor is None
    assert (len(seen), set(seen)) == (20, written)
    for partition_index in ("0", "1"):
        offsets = [int(name[2:]) for name in seen if name[0] == partition_index]
        assert offsets == sorted(offsets, reverse=not start)


async def test_from_an_offset_or_a_time_on_the_oldest_come_first(console):
    await console.topic("t", 1, [NewRecord(100 * n, None, str(n).encode()) for n in range(9)])
    found, cursor = await values(console, offset="6", limit="2")
    assert found == ["6", "7"]
    assert (await values(console, offset="6", limit="2", cursor=cursor))[0] == ["8"]
    assert (await values(console, time="450"))[0] == ["5", "6", "7", "8"]
    assert (await values(console, time="99999"))[0] == []


async def test_a_search_looks_at_everything_a_part_at_a_time(console):
    records = [b"needle" if n in (3, 2000) else b"hay" for n in range(2500)]
    await console.topic("t", 1, records)
    assert (await values(console, search="NEEDLE"))[0] == ["needle", "needle"]


async def test_one_record_in_full(console):
    await console.topic("t", 1, [b"x" * 100_000])
    _, found = await console.get("/api/messages", topic="t")
    assert found["records"][0]["value"]["cut"]
    _, record = await console.get("/api/message", topic="t", partition="0", offset="0")
    assert record["value"]["text"] == "x" * 100_000
    assert (await console.get("/api/message", topic="t", partition="0", offset="7"))[0] == 404


async def test_new_messages_as_they_come(console):
    await console.topic("t", 1, [b"old"])
    async with console.session.get(f"{console.url}/api/tail", params={"topic": "t"}) as stream:
        while not partition(console.broker, "t").waiters:  # noqa: ASYNC110
            await asyncio.sleep(0)
        console.write("t", b"new")
        news = await next_news(stream)
        assert [record["value"]["text"] for record in news["records"]] == ["new"]
        console.write("t", *([b"many"] * 500))
        news = await next_news(stream)
        assert len(news["records"]) + news["skipped"] == 500
        assert news["skipped"] == 400


async def test_a_tail_ends_when_its_reader_has_gone_also_if_nothing_is_written(console, monkeypatch):
    monkeypatch.setattr(messages, "_SECONDS_WITHOUT_NEWS", 0.01)
    await console.topic("t")
    log = partition(console.broker, "t", 0)
    async with console.session.get(f"{console.url}/api/tail", params={"topic": "t"}):
        while not log.waiters:  # noqa: ASYNC110
            await asyncio.sleep(0)
    streams = console.console._api._streams
    while streams or log.waiters:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_tail_ends_with_its_topic_also_if_there_is_another_one_of_that_name(console, monkeypatch):
    monkeypatch.setattr(messages, "_SECONDS_WITHOUT_NEWS", 0.01)
    await console.topic("t")
    async with console.session.get(f"{console.url}/api/tail", params={"topic": "t"}) as stream:
        await delete_topic(console.broker, "t")
        await console.topic("t", 1, [b"reborn"])
        assert (await next_news(stream))["error"] == "t has been deleted"
        assert b"reborn" not in await stream.content.read()


async def test_a_tail_shows_what_comes_to_partitions_that_are_added(writable, monkeypatch):
    monkeypatch.setattr(messages, "_SECONDS_WITHOUT_NEWS", 0.01)
    await writable.topic("t")
    async with writable.session.get(f"{writable.url}/api/tail", params={"topic": "t"}) as stream:
        await writable.post("/api/topics/grow", {"name": "t", "partitions": 2})
        writable.write("t", b"early", index=1)
        (record,) = (await next_news(stream))["records"]
        assert (record["partition"], record["value"]["text"]) == (1, "early")


async def test_a_tail_is_no_fetch_of_a_consumer(console):
    await console.topic("t")
    async with console.session.get(f"{console.url}/api/tail", params={"topic": "t"}):
        while not partition(console.broker, "t", 0).waiters:  # noqa: ASYNC110
            await asyncio.sleep(0)
        _, told = await console.get("/api/topic", name="t")
        assert told["partition_list"][0]["waiting_fetches"] == 0


async def test_a_tail_waits_at_a_partition_only_while_there_is_nothing_new(console, monkeypatch):
    monkeypatch.setattr(messages, "_SECONDS_BETWEEN_TAILS", 3600)
    await console.topic("t")
    log = partition(console.broker, "t", 0)
    async with console.session.get(f"{console.url}/api/tail", params={"topic": "t"}) as stream:
        while not log.waiters:  # noqa: ASYNC110
            await asyncio.sleep(0)
        console.write("t", b"news")
        assert (await next_news(stream))["records"]
        assert not log.waiters


@pytest.mark.parametrize("query", [{"topic": "no"}, {"topic": "t", "partition": "9"}, {"topic": "t", "partition": "x"}])
async def test_what_is_not_there_is_named(console, query):
    await console.topic("t")
    for path in ("/api/messages", "/api/tail"):
        status, told = await console.get(path, **query)
        assert status == 404
        assert "t" in told["error"]


# --- the journal ---


async def test_the_journal_can_be_turned_on(console):
    assert (await console.get("/api/journal"))[1] == {"on": False, "last": 0, "rows": []}
    assert (await console.post("/api/journal", {"on": True}))[1] == {"on": True}
    assert (await console.get("/api/journal", error="NO_SUCH_ERROR"))[0] == 400
    assert (await console.post("/api/journal", {"on": "yes"}))[0] == 400


# --- changes ---


@pytest.mark.parametrize(
    "path",
    ["/api/topics/create", "/api/topics/delete", "/api/messages/produce", "/api/groups/reset", "/api/groups/delete"],
)
async def test_a_console_that_may_only_look_changes_nothing(console, path):
    status, told = await console.post(path, {"name": "t"})
    assert status == 403
    assert "--console-write" in told["error"]


async def test_a_topic_is_created_written_to_and_deleted(writable):
    assert (await writable.post("/api/topics/create", {"name": "t", "partitions": 2}))[1] == {
        "name": "t",
        "partitions": 2,
    }
    status, told = await writable.post("/api/topics/create", {"name": "t", "partitions": 2})
    assert (status, "exists" in told["error"]) == (409, True)
    body = {"topic": "t", "partition": 1, "key": "k", "value": "<b>v</b>"}
    assert (await writable.post("/api/messages/produce", body))[1] == {"partition": 1, "offset": 0}
    assert (await values(writable))[0] == ["<b>v</b>"]
    assert (await writable.post("/api/topics/delete", {"name": "t"}))[0] == 200
    assert (await writable.get("/api/topic", name="t"))[0] == 404


async def test_offsets_are_moved_after_a_preview(writable):
    await writable.topic("t", 1, [NewRecord(100 * n, None, b"x") for n in range(9)])
    await commit(writable, offset=5)
    ask = {"name": "castle", "to": "earliest", "preview": True}
    _, told = await writable.post("/api/groups/reset", ask)
    assert told["plan"] == [{"topic": "t", "partition": 0, "from": 5, "to": 0}]
    assert (await writable.get("/api/group", name="castle"))[1]["offsets"][0]["offset"] == 5
    for to, target in (
        ({"to": "latest"}, 9),
        ({"to": "shift", "offset": -2}, 7),
        ({"to": "offset", "offset": 99}, 9),
        ({"to": "time", "time": 250}, 3),
    ):
        _, told = await writable.post("/api/groups/reset", {"name": "castle", **to})
        assert told["plan"][0]["to"] == target, to
        assert (await writable.get("/api/group", name="castle"))[1]["offsets"][0]["offset"] == target
    assert (await writable.post("/api/groups/reset", {"name": "castle", "to": "nowhere"}))[0] == 400


async def test_a_group_is_deleted(writable):
    await writable.topic("t")
    await commit(writable, offset=0)
    assert (await writable.post("/api/groups/delete", {"name": "castle"}))[0] == 200
    assert (await writable.get("/api/groups"))[1]["total"] == 0
    assert (await writable.post("/api/groups/delete", {"name": "castle"}))[0] == 404

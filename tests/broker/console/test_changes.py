"""What the console changes, where it may: topics, messages, and with --control the broker as a whole."""

import pytest

from barnabas.broker.testing.clock import MovableClock
from barnabas.protocol.records.builder import NewRecord
from tests.broker.console.conftest import looking


async def texts(console, topic="t"):
    _, told = await console.get("/api/messages", topic=topic)
    return [(record["key"] or {}).get("text", "") + ":" + record["value"]["text"] for record in told["records"]]


async def test_a_topic_gets_more_partitions(writable):
    await writable.topic("t", 2)
    assert (await writable.post("/api/topics/grow", {"name": "t", "partitions": 5}))[0] == 200
    assert (await writable.get("/api/topic", name="t"))[1]["partitions"] == 5
    status, told = await writable.post("/api/topics/grow", {"name": "t", "partitions": 3})
    assert status == 409
    assert "3" in told["error"]
    assert (await writable.post("/api/topics/grow", {"name": "none", "partitions": 3}))[0] == 409
    assert (await writable.post("/api/topics/grow", {"name": "t", "partitions": "many"}))[0] == 400


async def test_settings_are_set_and_given_back_their_default(writable):
    async def retention():
        _, told = await writable.get("/api/topic", name="t")
        return next((row["value"], row["source"]) for row in told["configs"] if row["name"] == "retention.ms")

    await writable.topic("t")
    default = await retention()
    body = {"name": "t", "configs": {"retention.ms": "1000"}}
    assert (await writable.post("/api/topics/alter", body))[0] == 200
    assert await retention() == ("1000", "DYNAMIC_TOPIC_CONFIG")
    assert (await writable.post("/api/topics/alter", {"name": "t", "configs": {"retention.ms": None}}))[0] == 200
    assert await retention() == default
    status, told = await writable.post("/api/topics/alter", {"name": "t", "configs": {"retention.ms": "soon"}})
    assert (status, "retention.ms" in told["error"]) == (409, True)
    assert (await writable.post("/api/topics/alter", {"name": "t", "configs": {"retention.ms": 5}}))[0] == 400


async def test_records_below_an_offset_are_deleted(writable):
    await writable.topic("t", 2, [b"a", b"b", b"c"])
    _, told = await writable.post("/api/messages/delete", {"topic": "t", "partition": 0, "offset": 2})
    assert told["partitions"] == [{"partition": 0, "first_offset": 2}]
    assert await texts(writable) == [":c"]
    _, told = await writable.post("/api/messages/delete", {"topic": "t", "partition": None, "offset": -1})
    assert [row["first_offset"] for row in told["partitions"]] == [3, 0]
    status, told = await writable.post("/api/messages/delete", {"topic": "t", "partition": 0, "offset": 99})
    assert (status, "OFFSET_OUT_OF_RANGE" in told["error"]) == (409, True)


async def test_records_are_written_again_to_another_topic(writable):
    records = [
        NewRecord(1000, b"k1", b"v1", [("h", b"x")]),
        NewRecord(1000, b"k2", b"v2"),
        NewRecord(1000, None, b"v3"),
    ]
    await writable.topic("t", 1, records)
    await writable.topic("copy", 2)
    body = {"from": "t", "to": "copy", "records": [{"partition": 0, "offset": 2}, {"partition": 0, "offset": 0}]}
    _, told = await writable.post("/api/messages/replay", body)
    assert told == {"topic": "copy", "written": [{"partition": 0, "offset": 0}]}
    _, found = await writable.get("/api/messages", topic="copy", offset="0")
    assert [record["value"]["text"] for record in found["records"]] == ["v3", "v1"]
    assert found["records"][1]["headers"] == [{"name": "h", "value": {"size": 1, "text": "x"}}]
    missing = {**body, "records": [{"partition": 0, "offset": 77}]}
    assert (await writable.post("/api/messages/replay", missing))[0] == 404
    assert (await writable.post("/api/messages/replay", {**body, "to": "nowhere"}))[0] == 404
    assert (await writable.post("/api/messages/replay", {**body, "records": []}))[0] == 400
    assert (await writable.post("/api/messages/replay", {**body, "to": "__consumer_offsets"}))[0] in (404, 409)


async def test_a_message_with_headers(writable):
    await writable.topic("t")
    body = {"topic": "t", "key": None, "value": "v", "headers": [["trace", "1"]]}
    assert (await writable.post("/api/messages/produce", body))[0] == 200
    _, found = await writable.get("/api/messages", topic="t")
    assert found["records"][0]["headers"][0]["name"] == "trace"
    assert (await writable.post("/api/messages/produce", {**body, "headers": [["a"]]}))[0] == 400


@pytest.mark.parametrize(
    "path", ["/api/topics/grow", "/api/topics/alter", "/api/messages/delete", "/api/messages/replay"]
)
async def test_a_console_that_may_only_look_changes_nothing(console, path):
    assert (await console.post(path, {"name": "t"}))[0] == 403


# --- control ---


@pytest.fixture
async def controlled(tmp_path):
    import asyncio

    clock = MovableClock(asyncio.get_running_loop())
    async with looking(tmp_path, writes=True, control=True, clock=clock) as found:
        yield found


async def test_faults_clock_and_a_fresh_start(controlled):
    await controlled.topic("t")
    assert (await controlled.get("/api/overview"))[1]["controls"] is True
    status, fault = await controlled.post("/api/control/faults", {"api": "Produce", "error": "NOT_COORDINATOR"})
    assert (status, fault["hits"]) == (200, 0)
    assert len((await controlled.get("/api/control/faults"))[1]) == 1
    assert (await controlled.post("/api/control/faults", {"api": "Produce"}))[0] == 400
    assert (await controlled.post("/api/control/clock/advance", {"seconds": 60}))[1]["ahead_ms"] >= 60_000
    async with controlled.session.post(f"{controlled.url}/api/control/reset", json={}) as response:
        assert response.status == 204
    assert (await controlled.get("/api/topics"))[1]["total"] == 0
    assert (await controlled.get("/api/control/faults"))[1] == []


async def test_a_form_of_another_site_does_not_control_anything(controlled):
    headers = {"Content-Type": "text/plain"}
    path = f"{controlled.url}/api/control/clock/advance"
    async with controlled.session.post(path, data='{"seconds": 60}', headers=headers) as response:
        assert response.status == 400
    async with controlled.session.post(path, json={}, headers={"Origin": "http://evil.example"}) as response:
        assert response.status == 403


async def test_without_control_there_is_none(writable):
    assert (await writable.get("/api/overview"))[1]["controls"] is False
    async with writable.session.get(f"{writable.url}/api/control/faults") as response:
        assert response.status == 404


async def test_the_broker_is_not_stopped_from_a_page(controlled):
    async with controlled.session.post(f"{controlled.url}/api/control/stop", json={}) as response:
        assert response.status in (404, 405)


# --- strict mode ---


async def test_strict_mode_is_switched(console):
    assert (await console.get("/api/strict"))[1] == {"on": False, "total": 0, "rows": []}
    assert (await console.post("/api/strict", {"on": True}))[1] == {"on": True}
    assert (await console.get("/api/strict"))[1]["on"] is True


# --- pipelines ---


async def test_a_pipeline_that_announces_itself(console):
    told = {"name": "orders", "run": "1", "state": "running", "topics": ["t"], "queries": [{"name": "q", "read": 5}]}
    assert (await console.post("/api/pipelines", told))[0] == 200
    (row,) = (await console.get("/api/pipelines"))[1]["rows"]
    assert (row["name"], row["silent"], row["queries"][0]["read"]) == ("orders", False, 5)
    assert (await console.post("/api/pipelines", {"name": "orders"}))[0] == 400
    assert (await console.post("/api/pipelines", {**told, "plan": "x" * 100_000}))[0] == 400

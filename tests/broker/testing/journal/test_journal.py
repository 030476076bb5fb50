"""The journal of a real broker: what is in it, what is found in it, and who waits for it."""

import asyncio
import io
import json

import pytest

from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.testing.http import Call, ControlError
from barnabas.broker.testing.journal.entry import Filter, parse_filter
from barnabas.broker.testing.journal.journal import Journal
from barnabas.broker.testing.lab import Lab
from barnabas.broker.testing.lab_routes import routes_of
from barnabas.client.requests import shares
from barnabas.client.requests.data import fetch, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.running_broker import cluster_of, create_topic, running

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path, group_initial_rebalance_delay_ms=0) as broker:
        await create_topic(broker, "t", partitions=2)
        yield broker


@pytest.fixture
async def lab(broker):
    lab = Lab(cluster_of(broker))
    lab.journal.switch(True)
    return lab


@pytest.fixture
async def journal(lab):
    return lab.journal


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


def entries(journal, **wanted):
    return [json.loads(entry.line) for entry in journal.select(parse_filter(wanted))]


def changes(journal, api, **wanted):
    (entry,) = entries(journal, api=api, **wanted)
    return entry["changes"]


async def test_a_request_is_reported_with_its_answer(journal, client):
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a", b"b"))), 9)
    (entry,) = entries(journal)
    assert (entry["number"], entry["api"], entry["version"], entry["client_id"]) == (1, "Produce", 9, "test")
    assert (entry["partitions"], entry["outcome"], entry["errors"]) == (["t-0"], "answered", [])
    assert entry["took_ms"] >= 0
    records = entry["request"]["topic_data"][0]["partition_data"][0]["records"]
    assert records["first_batch"] == {
        **{"base_offset": 0, "records": 2, "compression": "none", "transactional": False, "control": False}
    }
    partition = entry["answer"]["responses"][0]["partition_responses"][0]
    assert (partition["error_code"], partition["base_offset"]) == ("NONE", 0)


async def test_records_of_a_share_group_and_its_session(broker, journal, client):
    place = broker.cluster.topic("t").topic_id, 0
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a", b"b", b"c"))), 9)
    key = SharePartitionKey("g", *place).coordinator_key
    await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    await client.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, shares.initialize_share_group_state("g", place), 0)
    first = shares.share_fetch("g", "m", 0, [place], max_wait_ms=5000, min_bytes=1)
    await client.ask(ApiKey.SHARE_FETCH, first, 2)
    share, session = changes(journal, "ShareFetch")
    assert session == {"share_session": "g:m", "epoch": [None, 1]}
    assert share == {
        "share_partition": "g:t-0",
        "start_offset": [None, 0],
        "end_offset": [None, 2],
        "acquired": [0, 3],
    }
    said = {place: [(0, 0, [shares.ACCEPT]), (2, 2, [shares.RELEASE])]}
    await client.ask(ApiKey.SHARE_ACKNOWLEDGE, shares.share_acknowledge("g", "m", 1, said), 2)
    share, session = changes(journal, "ShareAcknowledge")
    assert session == {"share_session": "g:m", "epoch": [1, 2]}
    assert share == {
        "share_partition": "g:t-0",
        "start_offset": [0, 1],
        "acquired": [3, 1],
        "available": [0, 1],
    }
    wrong = shares.share_fetch("g", "m", 2, acknowledgements={place: [(7, 7, [shares.ACCEPT])]})
    await client.ask(ApiKey.SHARE_FETCH, wrong, 2)
    (entry,) = entries(journal, api="ShareFetch", error="any")
    assert entry["errors"] == ["INVALID_REQUEST"]
    await client.ask(ApiKey.SHARE_FETCH, shares.share_fetch("g", "m", -1), 2)
    last = entries(journal, api="ShareFetch", topic="t", partition=0)[-1]  # by its session, it is about t-0
    assert last["changes"][-1] == {"share_session": "g:m", "epoch": [None, "closed"]}
    await client.ask(ApiKey.SHARE_FETCH, shares.share_fetch("g", "m", 4), 2)
    assert entries(journal, api="ShareFetch")[-1]["changes"] == [
        {"share_session": "g:m", "error": "SHARE_SESSION_NOT_FOUND"}
    ]


async def test_records_in_a_fetch_are_summarized(journal, client):
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a", b"b"))), 9)
    await client.ask(ApiKey.FETCH, fetch(("t", 0, 0)), 6)
    (entry,) = entries(journal, api="Fetch")
    records = entry["answer"]["responses"][0]["partitions"][0]["records"]
    assert records["first_batch"]["records"] == 2
    assert records["bytes"] == len(batch(b"a", b"b"))


async def test_changes_made_by_a_request_are_reported(journal, client):
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a", b"b"))), 9)
    assert changes(journal, "Produce") == [{"partition": "t-0", "high_watermark": [0, 2], "last_stable_offset": [0, 2]}]
    await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), session_epoch=0), 12)
    ((session),) = changes(journal, "Fetch")
    assert session["epoch"] == [None, 1]


async def test_a_change_of_a_group_is_shown_at_the_request_that_caused_it(journal, client):
    await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
    join = JoinGroupRequest(
        **{"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": ""},
        **{"protocol_type": "consumer", "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"")]},
    )
    await client.ask(ApiKey.JOIN_GROUP, join, 2)
    started, completed = changes(journal, "JoinGroup")
    assert started == {"group": "g", "state": [None, "PreparingRebalance"], "generation": [None, 0], "members": [0, 1]}
    assert completed == {"group": "g", "state": ["PreparingRebalance", "CompletingRebalance"], "generation": [0, 1]}
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    assert changes(journal, "Heartbeat") == []


async def test_errors_are_found_by_name(journal, client):
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    (entry,) = entries(journal, error="any")
    assert entry["errors"] == ["NOT_COORDINATOR"]
    assert entries(journal, error="NOT_COORDINATOR", group="g")
    assert not entries(journal, error="none")
    assert not entries(journal, error="UNKNOWN_MEMBER_ID")


async def test_entries_are_found_by_what_they_are_about(journal, client):
    await client.ask(ApiKey.PRODUCE, produce(("t", 1, batch(b"a"))), 9)
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    for wanted, number in (
        ({"api": "produce"}, 1),
        ({"topic": "t"}, 1),
        ({"topic": "*", "partition": 1}, 1),
        ({"group": "g"}, 1),
        ({"api": "Produce,Heartbeat"}, 2),
        ({"client_id": "te*"}, 2),
        ({"topic": "t", "partition": 0}, 0),
        ({"client_id": "other"}, 0),
        ({"since": "1"}, 1),
        ({"outcome": "closed"}, 0),
    ):
        assert len(entries(journal, **wanted)) == number, wanted


@pytest.mark.parametrize("wanted", [{"api": "Prduce"}, {"error": "x"}, {"partition": "x"}, {"since": -1}, {"who": "x"}])
def test_an_error_in_a_filter_is_reported_with_the_field(wanted):
    with pytest.raises(ValueError, match=f"^{next(iter(wanted))}: "):
        parse_filter(wanted)


async def test_a_produce_without_acks_has_no_answer(journal, client):
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a")), acks=0), version=9))
    (entry,) = await journal.expect(Filter(api=("Produce",)), 1, 30)
    assert (entry.outcome, json.loads(entry.line)["answer"]) == ("no answer due", None)


async def test_a_client_that_goes_away_is_noticed(journal, broker):
    async with connected(broker.server) as client:
        client.send(frame(ApiKey.FETCH, fetch(("t", 0, 0), max_wait_ms=60_000), version=6))
        client.writer.write_eof()
        (entry,) = await journal.expect(Filter(api=("Fetch",)), 1, 30)
    assert (entry.outcome, json.loads(entry.line)["reason"]) == ("closed", "the connection went away")


async def test_a_frame_that_is_not_a_request_is_reported(journal, client):
    client.send(b"\x00\x00\x00\x0a\x00\x63\x00\x00\x00\x00\x00\x01\xff\xff")
    (entry,) = await journal.expect(Filter(outcome="misunderstood"), 1, 30)
    assert json.loads(entry.line)["reason"] == "no API has key 99 here"


async def test_the_effect_of_a_fault_is_shown_with_its_number(lab, client):
    fault = lab.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), 9)
    (entry,) = entries(lab.journal)
    assert (entry["fault"], entry["errors"]) == (fault.number, ["NOT_LEADER_OR_FOLLOWER"])


async def test_an_answer_is_in_the_journal_when_its_client_has_it(journal, client):
    for number in range(1, 200):
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
        assert journal.last_number == number


async def test_what_is_expected_may_have_been_there_already_or_still_come(journal, client):
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    heartbeats = Filter(api=("Heartbeat",), group="g")
    (first,) = await journal.expect(heartbeats, 1, 30)
    assert first.number == 1
    waiting = asyncio.create_task(journal.expect(heartbeats, 3, 30))
    await asyncio.sleep(0)
    client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, version=3) * 2)
    assert [entry.number for entry in await waiting] == [1, 2, 3]
    assert await journal.expect(heartbeats, 4, 0.01) == [*await waiting]
    assert journal._listeners == []


async def test_a_follower_gets_existing_and_new_entries(journal, client):
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    following = journal.follow(Filter())
    assert json.loads(await anext(following))["number"] == 1
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    assert json.loads(await anext(following))["number"] == 2
    await following.aclose()
    assert journal._listeners == []


async def test_the_ring_is_bounded_and_the_last_entries_stay(broker, journal, client):
    small = Journal(broker.clock, lambda: None, max_bytes=1500)
    for _ in range(10):
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    for entry in journal.select(Filter()):
        small._append(*entry[1:4], *entry[5:10], json.loads(entry.line))
    assert 0 < len(small.select(Filter())) < 10
    assert small.select(Filter())[-1].number == 10
    assert small.last_dropped == small.select(Filter())[0].number - 1
    assert [entry.number for entry in journal.select(Filter(), limit=3)] == [8, 9, 10]


async def test_nothing_is_asserted_about_dropped_entries(lab, client):
    expect = next(route.handle for route in routes_of(lab) if route.path == "/journal/expect")
    lab.journal._max_bytes = 1500
    for _ in range(10):
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)

    def ask(**fields):
        return expect(Call("POST", "/journal/expect", {}, {}, json.dumps(fields).encode()))

    with pytest.raises(ControlError, match="was full and has dropped"):
        await ask(since=1)
    assert len((await ask(since=lab.journal.last_dropped))["found"]) == 10 - lab.journal.last_dropped
    assert (await ask())["found"]  # without a position, everything that exists is wanted


async def test_entries_go_to_a_file_as_they_come(journal, client):
    file = io.BytesIO()
    journal.write_to(file)
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    assert json.loads(file.getvalue())["api"] == "Heartbeat"


async def test_a_journal_that_is_off_sees_nothing_and_costs_nothing(broker, journal, client):
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    journal.switch(False)
    await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 3)
    assert len(journal.select(Filter())) == 1
    journal.clear()
    assert journal.select(Filter()) == []

"""Each rule of strict mode: what breaks it, and what comes close and does not."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import connection
from barnabas.broker.testing.lab import Lab
from barnabas.broker.testing.reset import reset
from barnabas.broker.testing.strict.strict import RULES
from barnabas.client.requests.data import fetch, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.running_broker import cluster_of, create_topic, partition, running


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path, group_initial_rebalance_delay_ms=0) as broker:
        await create_topic(broker, "t", partitions=2)
        yield broker


@pytest.fixture
async def now(monkeypatch):
    """The time of strict mode, which stands still until a test moves it."""

    class Now:
        seconds = 1000.0

        def __call__(self):
            return self.seconds

    clock = Now()
    monkeypatch.setattr("barnabas.broker.testing.strict.strict.monotonic", clock)
    return clock


@pytest.fixture
async def lab(broker, now):
    lab = Lab(cluster_of(broker))
    lab.strict.switch(True)
    return lab


@pytest.fixture
async def client(broker, lab):
    async with connected(broker.server) as client:
        await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
        yield client


def broken(lab):
    return [report.rule for report in lab.strict.reports]


async def join(client, member_id="", version=3, group="g"):
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        **{"group_id": group, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": member_id},
        **{"protocol_type": "consumer", "protocols": protocols},
    )
    return await client.ask(ApiKey.JOIN_GROUP, request, version)


async def sync(client, generation, member_id):
    request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, assignments=[])
    return await client.ask(ApiKey.SYNC_GROUP, request, 3)


async def heartbeat(client, generation, member_id):
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    return (await client.ask(ApiKey.HEARTBEAT, request, 3)).error_code


async def member(client):
    joined = await join(client)
    await sync(client, joined.generation_id, joined.member_id)
    return joined.member_id, joined.generation_id


async def commit(client, generation=-1, member_id=""):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=generation, member_id=member_id, topics=topics
    )
    return await client.ask(ApiKey.OFFSET_COMMIT, request, 6)


def test_every_rule_has_a_unique_name_and_a_basis():
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all("KIP" in rule.reference or "protocol guide" in rule.reference for rule in RULES)


# --- groups ---


async def test_a_member_that_follows_the_rules_is_not_reported(lab, client, now):
    member_id, generation = await member(client)
    await heartbeat(client, generation, member_id)
    await commit(client, generation, member_id)
    joined = await join(client, member_id)
    await sync(client, joined.generation_id, member_id)
    await heartbeat(client, joined.generation_id, member_id)
    await client.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id="g", member_id=member_id), 2)
    assert broken(lab) == []


async def test_a_generation_gone_back(lab, client):
    member_id, generation = await member(client)
    joined = await join(client, member_id)
    # What was on its way when the rebalance ended may still be of the old generation.
    await heartbeat(client, generation, member_id)
    assert broken(lab) == []
    await sync(client, joined.generation_id, member_id)
    assert await heartbeat(client, generation, member_id) == ErrorCode.ILLEGAL_GENERATION
    assert broken(lab) == ["generation-gone-back"]


async def test_a_generation_that_was_never_given(lab, client):
    member_id, generation = await member(client)
    await heartbeat(client, generation + 5, member_id)
    assert broken(lab) == ["generation-never-given"]


async def test_a_generation_of_a_group_that_was_forgotten_meanwhile_is_fine(broker, lab, client):
    """A group that starts over starts with the first generation, and its old members learn this from their answers."""
    member_id, _ = await member(client)
    generation = (await join(client, member_id)).generation_id
    await reset(cluster_of(broker))
    async with connected(broker.server) as another:
        await another.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
        await member(another)
        await heartbeat(client, generation, member_id)
        await heartbeat(another, generation, member_id)
    assert broken(lab) == []


async def test_a_heartbeat_to_the_wrong_coordinator(lab, client, now):
    lab.faults.add({"api": "Heartbeat", "error": "NOT_COORDINATOR"})
    for _ in range(10):  # all of these may have been sent before the first answer was read
        await heartbeat(client, 1, "m")
    for _ in range(2):
        now.seconds += 1
        await heartbeat(client, 1, "m")
    assert broken(lab) == []
    now.seconds += 1
    await heartbeat(client, 1, "m")
    assert broken(lab) == ["wrong-coordinator"]


async def test_a_coordinator_that_is_looked_for_again_is_fine(lab, client, now):
    lab.faults.add({"api": "Heartbeat", "error": "NOT_COORDINATOR"})
    for _ in range(10):
        now.seconds += 1
        await heartbeat(client, 1, "m")
        now.seconds += 0.01
        await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
    assert broken(lab) == []


async def test_a_coordinator_may_be_looked_for_over_another_connection(broker, lab, client, now):
    lab.faults.add({"api": "Heartbeat", "error": "NOT_COORDINATOR"})
    async with connected(broker.server) as another:
        for _ in range(10):
            now.seconds += 1
            await heartbeat(client, 1, "m")
            now.seconds += 1
            await another.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
    assert broken(lab) == []


async def test_a_member_id_that_is_ignored(lab, client):
    given = await join(client, version=4)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    await join(client, given.member_id, version=4)
    assert broken(lab) == []
    for _ in range(2):
        await join(client, version=4, group="h")
        assert broken(lab) == []
    await join(client, version=4, group="h")
    assert broken(lab) == ["member-id-ignored"]


async def test_requests_after_leaving(lab, client, now):
    member_id, generation = await member(client)
    await client.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id="g", member_id=member_id), 2)
    await heartbeat(client, generation, member_id)
    assert broken(lab) == []
    now.seconds += 1
    await heartbeat(client, generation, member_id)
    assert broken(lab) == ["spoken-after-leaving"]


async def test_offsets_committed_by_a_non_member(broker, lab, client):
    await commit(client)  # the group has no members, so this is how it is done
    assert broken(lab) == []
    await member(client)
    async with connected(broker.server) as another:
        await commit(another)
    assert broken(lab) == ["commit-by-non-member"]


# --- producers and readers ---


def idempotent(sequence, epoch=0, producer_id=9, **fields):
    records = batch(b"a", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return produce(("t", 0, records), **fields)


async def test_too_many_in_flight(lab, client, monkeypatch):
    monkeypatch.setattr(connection, "_FAIR_SECONDS", 60)  # however slow this machine is
    frames = [frame(ApiKey.PRODUCE, idempotent(number), version=9) for number in range(6)]
    client.send(b"".join(frames[:5]))
    for _ in range(5):
        await client.answer(ApiKey.PRODUCE, 9)
    assert broken(lab) == []
    # A connection starts requests together that arrive together.
    client.send(b"".join(frame(ApiKey.PRODUCE, idempotent(5 + number), version=9) for number in range(6)))
    for _ in range(6):
        await client.answer(ApiKey.PRODUCE, 9)
    assert set(broken(lab)) == {"too-many-in-flight"}


async def test_many_in_flight_without_idempotence_are_fine(lab, client):
    client.send(b"".join(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9) for _ in range(20)))
    for _ in range(20):
        await client.answer(ApiKey.PRODUCE, 9)
    assert broken(lab) == []


async def test_idempotence_without_acks(lab, client):
    await client.ask(ApiKey.PRODUCE, idempotent(0), 9)
    assert broken(lab) == []
    await client.ask(ApiKey.PRODUCE, idempotent(1, acks=1), 9)
    assert broken(lab) == ["idempotence-without-acks"]


async def test_a_producer_epoch_gone_back(lab, client):
    await client.ask(ApiKey.PRODUCE, idempotent(0, epoch=3), 9)
    await client.ask(ApiKey.PRODUCE, idempotent(0, epoch=1, producer_id=10), 9)
    assert broken(lab) == []
    await client.ask(ApiKey.PRODUCE, idempotent(0, epoch=2), 9)
    assert broken(lab) == ["producer-epoch-gone-back"]


async def test_a_leader_epoch_gone_back(broker, lab, client):
    for epoch in (3, 0, 3):  # the broker itself is at 0, as after a restore
        await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), partition_fields={"current_leader_epoch": epoch}), 11)
    partition(broker, "t", 0).lead(3)
    for epoch in (3, -1, 3):
        await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), partition_fields={"current_leader_epoch": epoch}), 11)
    assert broken(lab) == []
    await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), partition_fields={"current_leader_epoch": 2}), 11)
    assert broken(lab) == ["leader-epoch-gone-back"]


async def test_a_fetch_session_misused(lab, client):
    first = await client.ask(ApiKey.FETCH, fetch(("t", 0, 0), session_epoch=0), 12)
    going_on = {"max_wait_ms": 0, "min_bytes": 1, "topics": [], "session_id": first.session_id}
    await client.ask(ApiKey.FETCH, FetchRequest(session_epoch=1, **going_on), 12)
    unknown = {**going_on, "session_id": 4711}
    await client.ask(ApiKey.FETCH, FetchRequest(session_epoch=1, **unknown), 12)  # it may have been pushed out
    assert broken(lab) == []
    await client.ask(ApiKey.FETCH, FetchRequest(session_epoch=7, **going_on), 12)
    (report,) = lab.strict.reports
    assert (report.rule, report.message) == (
        "fetch-session-misused",
        f"session {first.session_id}: epoch 7, where 2 was next",
    )


async def test_retries_without_backoff(lab, client, now):
    lab.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
    for _ in range(10):
        await client.ask(ApiKey.PRODUCE, idempotent(0), 9)
    assert broken(lab) == []
    await client.ask(ApiKey.PRODUCE, idempotent(0), 9)
    assert broken(lab) == ["retried-without-backoff"]


async def test_requests_that_were_already_in_flight_are_not_retries(lab, client, now):
    lab.faults.add({"api": "Heartbeat", "error": "COORDINATOR_LOAD_IN_PROGRESS"})
    heartbeats = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    client.send(frame(ApiKey.HEARTBEAT, heartbeats, version=3) * 30)
    for _ in range(30):
        await client.answer(ApiKey.HEARTBEAT, 3)
    assert broken(lab) == []


async def test_retries_after_a_pause_are_fine_and_so_are_different_batches(lab, client, now):
    lab.faults.add({"error": "KAFKA_STORAGE_ERROR"})
    for number in range(30):
        now.seconds += 0.1
        await client.ask(ApiKey.PRODUCE, idempotent(0), 9)
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"%d" % number))), 9)
    assert broken(lab) == []


# --- requests of every kind ---


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"\x00\x00\x00\x0a\x00\x63\x00\x00\x00\x00\x00\x01\xff\xff", "api-not-served"),
        (b"\x00\x00\x00\x0c\x00\x0c\x00\x00\x00\x00\x00\x01\xff\xff\x00\x63", "malformed-request"),
    ],
)
async def test_frames_that_are_not_requests(broker, lab, client, data, rule):
    async with connected(broker.server) as another:
        another.send(data)
        assert await another.closed()
    assert broken(lab) == [rule]


async def test_the_same_report_is_counted_and_can_be_cleared(lab, client):
    member_id, generation = await member(client)
    for _ in range(3):
        await heartbeat(client, generation + 5, member_id)
    (report,) = lab.strict.reports
    assert (report.count, report.client_id) == (3, "test")
    assert report.describe()["count"] == 3
    lab.reset()
    assert lab.strict.reports == []


async def test_connections_that_are_gone_are_forgotten(broker, lab):
    for _ in range(20):
        async with connected(broker.server) as client:
            await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 3)
        await asyncio.sleep(0.01)
    assert len(lab.strict._memories) < 10


async def test_the_number_of_reports_is_limited(lab, client, monkeypatch):
    """A client that keeps breaking rules in new ways fills neither the memory nor the log."""
    monkeypatch.setattr("barnabas.broker.testing.strict.strict._MOST_REPORTS", 2)
    member_id, generation = await member(client)
    with capture_logs() as logs:
        for more in range(1, 5):
            await heartbeat(client, generation + more, member_id)
    assert broken(lab) == ["generation-never-given"] * 2
    assert [entry["event"] for entry in logs] == [
        *["a client breaks a rule"] * 2,
        "clients break rules more often than is reported",
    ]

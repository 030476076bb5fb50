"""The rules of share groups and of member epochs: what breaks them, and what comes close and does not."""

import pytest

from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.testing.lab import Lab
from barnabas.client.requests import groups, share_groups, shares, streams
from barnabas.client.requests.data import produce
from barnabas.client.requests.shares import ACCEPT, RELEASE, RENEW
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import cluster_of, create_topic, running


@pytest.fixture
async def broker(tmp_path):
    async with running(tmp_path) as broker:
        await create_topic(broker, "t")
        yield broker


@pytest.fixture
async def lab(broker):
    lab = Lab(cluster_of(broker))
    lab.strict.switch(True)
    return lab


@pytest.fixture
async def client(broker, lab):
    async with connected(broker.server) as client:
        yield client


@pytest.fixture
def place(broker):
    return broker.cluster.topic("t").topic_id, 0


@pytest.fixture
async def five_records(client, place):
    """Five records, of which the group g has read none."""
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a", b"b", b"c", b"d", b"e"))), 9)
    key = SharePartitionKey("g", *place).coordinator_key
    found = await client.ask(
        ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6
    )  # which also has the topic of the share coordinator created
    begin = shares.initialize_share_group_state("g", place)
    for _ in range(1000):
        answer = await client.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, begin, 0)
        if not answer.results[0].partitions[0].error_code:
            return
    raise AssertionError(f"there is no share coordinator: {found}, {answer}")


def broken(lab):
    return [(report.rule, report.message) for report in lab.strict.reports]


async def fetch(client, epoch, *places, max_wait_ms=5000, **fields):
    message = shares.share_fetch("g", "m", epoch, places, max_wait_ms=max_wait_ms, **fields)
    return await client.ask(ApiKey.SHARE_FETCH, message, 2)


async def acknowledge(client, epoch, acknowledgements, **fields):
    message = shares.share_acknowledge("g", "m", epoch, acknowledgements, **fields)
    return await client.ask(ApiKey.SHARE_ACKNOWLEDGE, message, 2)


async def acquired(client, place):
    answer = await fetch(client, 0, place, min_bytes=1)
    (given,) = answer.responses[0].partitions[0].acquired_records
    assert (given.first_offset, given.last_offset) == (0, 4)


@pytest.mark.usefixtures("five_records")
async def test_a_member_that_follows_the_rules_is_not_reported(lab, client, place):
    await acquired(client, place)
    await acknowledge(client, 1, {place: [(0, 4, [RENEW])]}, is_renew_ack=True)
    await acknowledge(client, 2, {place: [(0, 1, [ACCEPT, RELEASE]), (3, 3, [RELEASE])]})
    await fetch(client, 3, min_bytes=1)  # offsets 1 and 3 again
    await fetch(client, 4, acknowledgements={place: [(1, 4, [ACCEPT])]}, max_wait_ms=0)  # nothing is left
    await fetch(client, -1)
    assert (await fetch(client, 5)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND  # it may have been ended for it
    assert broken(lab) == []


@pytest.mark.usefixtures("five_records")
async def test_an_epoch_that_is_not_the_next(lab, client, place):
    await acquired(client, place)
    assert (await fetch(client, 4)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert broken(lab) == [("share-session-misused", "group g, member m: epoch 4, where 1 was next")]


@pytest.mark.usefixtures("five_records")
async def test_a_session_that_a_fault_brought_out_of_step(lab, client, place):
    await acquired(client, place)
    lab.faults.add({"api": "ShareFetch", "error": "UNKNOWN_SERVER_ERROR", "times": 1})
    await fetch(client, 1)
    assert (await fetch(client, 2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert broken(lab) == []
    await fetch(client, 0, place, max_wait_ms=0)
    await fetch(client, 2)
    assert [rule for rule, _ in broken(lab)] == ["share-session-misused"]


async def test_a_session_begins_with_a_fetch_that_acknowledges_nothing(lab, client, place):
    await fetch(client, 0, acknowledgements={place: [(0, 0, [ACCEPT])]})
    await acknowledge(client, 0, {place: [(0, 0, [ACCEPT])]})
    assert [rule for rule, _ in broken(lab)] == ["share-session-misused", "share-session-misused"]


@pytest.mark.usefixtures("five_records")
@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([(2, 3, [ACCEPT]), (0, 1, [ACCEPT])], "t-0: an acknowledgement of 0 to 1, after offset 3"),
        ([(0, 2, [ACCEPT]), (2, 3, [ACCEPT])], "t-0: an acknowledgement of 2 to 3, after offset 2"),
        ([(3, 2, [ACCEPT])], "t-0: an acknowledgement of 3 to 2"),
        ([(0, 2, [ACCEPT, ACCEPT])], "t-0: 2 types for 0 to 2"),
    ],
)
async def test_acknowledgements_out_of_order(lab, client, place, batches, message):
    await acquired(client, place)
    await acknowledge(client, 1, {place: batches})
    assert broken(lab) == [("acknowledgements-out-of-order", message)]


@pytest.mark.usefixtures("five_records")
async def test_what_was_never_acquired(lab, client, place):
    await acquired(client, place)
    await acknowledge(client, 1, {place: [(3, 6, [ACCEPT])]})
    assert broken(lab) == [("acknowledged-never-acquired", "t-0: group g, member m does not have offset 5")]


@pytest.mark.usefixtures("five_records")
async def test_what_was_acknowledged_already(lab, client, place):
    await acquired(client, place)
    await acknowledge(client, 1, {place: [(1, 2, [ACCEPT])]})
    assert broken(lab) == []
    await acknowledge(client, 2, {place: [(2, 2, [ACCEPT])]})
    assert broken(lab) == [("acknowledged-never-acquired", "t-0: group g, member m does not have offset 2")]


@pytest.mark.usefixtures("five_records")
async def test_what_was_given_before_strict_mode_was_on(lab, client, place):
    lab.strict.switch(False)
    await acquired(client, place)
    lab.strict.switch(True)
    await acknowledge(client, 1, {place: [(0, 4, [ACCEPT])]})
    assert broken(lab) == []


# --- member epochs ---


def consumer_beat(epoch):
    return ApiKey.CONSUMER_GROUP_HEARTBEAT, groups.consumer_group_heartbeat("g", "m", epoch, topics=["t"]), 1


def share_beat(epoch):
    return ApiKey.SHARE_GROUP_HEARTBEAT, share_groups.share_group_heartbeat("g", "m", epoch, ["t"]), 1


def streams_beat(epoch):
    return ApiKey.STREAMS_GROUP_HEARTBEAT, streams.streams_group_heartbeat("g", "m", epoch), 0


@pytest.mark.parametrize("beat", [consumer_beat, share_beat, streams_beat])
async def test_a_member_epoch_gone_back(lab, client, beat):
    for epoch in (0, 5, 5, 6, 0, 2):  # it was fenced, and joined again
        await client.ask(*beat(epoch))
    assert broken(lab) == []
    await client.ask(*beat(1))
    assert broken(lab) == [("member-epoch-gone-back", "group g: member epoch 1 after the member had used 2")]


async def test_a_member_that_has_left_goes_on(lab, client, monkeypatch):
    seconds = iter(range(1000))
    monkeypatch.setattr("barnabas.broker.testing.strict.strict.monotonic", lambda: float(next(seconds)))
    await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    answer = await client.ask(*consumer_beat(0))
    assert answer.error_code == ErrorCode.NONE
    epoch = answer.member_epoch
    await client.ask(*consumer_beat(-1))
    await client.ask(*consumer_beat(0))
    await client.ask(*consumer_beat(epoch + 1))
    assert broken(lab) == []
    await client.ask(*consumer_beat(-1))
    await client.ask(*consumer_beat(epoch + 2))
    assert [rule for rule, _ in broken(lab)] == ["spoken-after-leaving"]

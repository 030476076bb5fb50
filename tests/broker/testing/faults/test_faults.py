"""What happens to requests that meet a fault, over a socket to a real broker."""

import asyncio

import pytest

from barnabas.broker.server.dispatch import Route
from barnabas.broker.testing.faults.fault import FaultError
from barnabas.broker.testing.lab import Lab
from barnabas.client.requests.data import fetch, list_offsets, produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records.batch import validate_batch
from barnabas.protocol.records.errors import CorruptRecords
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import cluster_of, create_topic, partition, running

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def broker(tmp_path, clock):
    async with running(tmp_path, clock=clock) as broker:
        await create_topic(broker, "t", partitions=2)
        yield broker


@pytest.fixture
async def faults(broker):
    return Lab(cluster_of(broker)).faults


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


async def produced(client, *parts, version=9, **fields):
    answer = await client.ask(ApiKey.PRODUCE, produce(*parts, **fields), version)
    return [(p.index, p.error_code) for topic in answer.responses for p in topic.partition_responses]


async def fetched(client, request, version=12):
    answer = await client.ask(ApiKey.FETCH, request, version)
    return answer, [(p.partition_index, p.error_code) for topic in answer.responses for p in topic.partitions]


def end_offset(broker, index=0):
    return partition(broker, "t", index).log.end_offset


async def is_silent(client):
    """Whether nothing arrives, although the broker has had enough time."""
    try:
        await asyncio.wait_for(client.reader.read(1), 0.1)
    except TimeoutError:
        return True
    return False


# --- error ---


async def test_an_error_is_answered_and_nothing_is_done(broker, faults, client):
    fault = faults.add({"api": "Produce", "topic": "t", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, NOT_LEADER)]
    assert (fault.hits, fault.over, end_offset(broker)) == (1, True, 0)
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, 0)]
    assert end_offset(broker) == 1


async def test_partitions_that_are_not_affected_are_served(broker, faults, client):
    faults.add({"topic": "t", "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER"})
    parts = [("t", 0, batch(b"a")), ("t", 1, batch(b"b"))]
    assert await produced(client, *parts) == [(0, 0), (1, NOT_LEADER)]
    assert (end_offset(broker, 0), end_offset(broker, 1)) == (1, 0)
    asked = list_offsets(("t", 0, -1), ("t", 1, -1))
    (topic,) = (await client.ask(ApiKey.LIST_OFFSETS, asked, 5)).topics
    assert [(p.partition_index, p.error_code, p.offset) for p in topic.partitions] == [(0, 0, 1), (1, NOT_LEADER, -1)]


async def test_a_topic_that_is_named_by_its_id_is_recognized(broker, faults, client):
    topic_id = await create_topic(broker, "by-id")
    faults.add({"api": "Produce", "topic": "by-id", "error": "NOT_LEADER_OR_FOLLOWER"})
    assert await produced(client, (topic_id, 0, batch(b"a")), version=13) == [(0, NOT_LEADER)]


async def test_other_requests_are_not_touched(broker, faults, client):
    fault = faults.add({"api": "Produce", "topic": "u", "client_id": "somebody", "error": "NOT_LEADER_OR_FOLLOWER"})
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, 0)]
    assert (fault.seen, fault.hits) == (0, 0)


async def test_a_fetch_that_would_wait_gets_an_error_at_once(broker, faults, client):
    faults.add({"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    _, partitions = await fetched(client, fetch(("t", 0, 0), ("t", 1, 0), max_wait_ms=60_000, session_epoch=-1))
    assert partitions == [(0, NOT_LEADER), (1, NOT_LEADER)]


async def test_an_error_in_a_fetch_session_leaves_the_session_in_step(broker, faults, client):
    await produced(client, ("t", 0, batch(b"a")))
    first, _ = await fetched(client, fetch(("t", 0, 1), ("t", 1, 0), session_epoch=0))
    faults.add({"api": "Fetch", "topic": "t", "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    following = {"max_wait_ms": 60_000, "min_bytes": 1, "topics": [], "session_id": first.session_id}
    # Nothing of what the session fetches is named in this request.
    _, partitions = await fetched(client, FetchRequest(session_epoch=1, **following))
    assert partitions == [(1, NOT_LEADER)]
    await produced(client, ("t", 1, batch(b"b")))
    answer, partitions = await fetched(client, FetchRequest(session_epoch=2, **following))
    assert (answer.error_code, partitions) == (0, [(1, 0)])


async def test_an_error_of_a_fetch_session_is_at_the_top(broker, faults, client):
    faults.add({"api": "Fetch", "error": "FETCH_SESSION_ID_NOT_FOUND"})
    answer, partitions = await fetched(client, fetch(("t", 0, 0), session_epoch=0))
    assert (answer.error_code, partitions) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


async def metadata(client, *names):
    topics = [MetadataRequestTopic(name=name) for name in names] or None
    answer = await client.ask(ApiKey.METADATA, MetadataRequest(topics=topics), 9)
    assert answer.brokers
    return {t.name: (t.error_code, [(p.error_code, p.leader_id) for p in t.partitions]) for t in answer.topics}


async def test_metadata_with_an_error_still_knows_the_brokers(broker, faults, client):
    await create_topic(broker, "u")
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    faults.add({"api": "Metadata", "topic": "u", "error": error.name})
    for asked in (("t", "u"), ()):
        told = await metadata(client, *asked)
        assert told["u"] == (error, [])
        assert told["t"] == (0, [(0, 0), (0, 0)])


async def test_a_partition_is_without_a_leader_in_metadata(broker, faults, client):
    error = ErrorCode.LEADER_NOT_AVAILABLE
    faults.add({"api": "Metadata", "topic": "t", "partition": 1, "error": error.name})
    assert (await metadata(client, "t"))["t"] == (0, [(0, 0), (error, -1)])
    faults.clear()
    assert (await metadata(client, "t"))["t"] == (0, [(0, 0), (0, 0)])


async def test_a_failing_produce_without_acks_ends_its_connection(broker, faults, client):
    faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a")), acks=0), version=9))
    assert await client.closed()
    assert end_offset(broker) == 0


async def test_an_error_goes_where_the_version_has_room_for_it(faults, client):
    faults.add({"group": "g", "error": "NOT_COORDINATOR"})
    answer = await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 2)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    answer = await client.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert answer.coordinators[0].error_code == ErrorCode.NOT_COORDINATOR
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert (await client.ask(ApiKey.HEARTBEAT, heartbeat, 4)).error_code == ErrorCode.NOT_COORDINATOR


# --- close ---


async def test_closing_before_handling_does_nothing(broker, faults, client):
    faults.add({"api": "Produce", "close": "before"})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    assert await client.closed()
    assert end_offset(broker) == 0


async def test_closing_after_handling_loses_the_answer_and_not_the_records(broker, faults, client):
    faults.add({"api": "Produce", "close": "after"})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    assert await client.closed()
    assert end_offset(broker) == 1


# --- delay ---


async def test_a_delayed_request_is_handled_when_its_time_has_come(broker, faults, client, clock):
    faults.add({"api": "Produce", "delay_ms": 700, "times": 1})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"late"))), version=9, correlation_id=1))
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"behind"))), version=9, correlation_id=2))
    await clock.timer_set(0.7)
    async with connected(broker.server) as another:
        # The receive buffer of the first is in use by another connection by now.
        for _ in range(3):
            await produced(another, ("t", 1, batch(b"x" * 1000)))
    assert end_offset(broker) == 0
    clock.advance(0.7)
    answers = [await client.answer(ApiKey.PRODUCE, 9) for _ in range(2)]
    offsets = [(n, a.responses[0].partition_responses[0].base_offset) for n, a in answers]
    assert offsets == [(1, 0), (2, 1)]


async def test_a_delayed_answer_arrives_after_the_request_was_carried_out(broker, faults, client, clock):
    faults.add({"api": "Produce", "delay_answer_ms": 700})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    await clock.timer_set(0.7)
    assert end_offset(broker) == 1
    clock.advance(0.7)
    await client.answer(ApiKey.PRODUCE, 9)


async def test_a_delayed_request_whose_client_has_gone_is_not_handled(broker, faults, clock):
    faults.add({"api": "Produce", "delay_ms": 700})
    async with connected(broker.server) as client:
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
        await clock.timer_set(0.7)
        client.writer.transport.abort()
    while broker.server.connections:  # noqa: ASYNC110
        await asyncio.sleep(0)
    clock.advance(0.7)
    assert end_offset(broker) == 0


async def test_something_may_happen_after_a_delay(broker, faults, client, clock):
    faults.add({"api": "Produce", "delay_ms": 700, "error": "NOT_LEADER_OR_FOLLOWER"})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    await clock.timer_set(0.7)
    clock.advance(0.7)
    _, answer = await client.answer(ApiKey.PRODUCE, 9)
    assert answer.responses[0].partition_responses[0].error_code == NOT_LEADER


async def test_held_requests_continue_when_their_fault_is_removed(broker, faults, client, clock):
    request = faults.add({"api": "Produce", "delay_ms": 700})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    await clock.timer_set(0.7)
    faults.remove(request.number)
    await client.answer(ApiKey.PRODUCE, 9)
    faults.add({"api": "Produce", "delay_answer_ms": 800})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"b"))), version=9))
    await clock.timer_set(0.8)
    faults.clear()
    await client.answer(ApiKey.PRODUCE, 9)
    clock.advance(0.9)
    assert await is_silent(client)
    assert end_offset(broker) == 2


async def test_a_fault_that_is_removed_delays_no_answers(broker, faults, client, clock):
    faults.add({"api": "Produce", "delay_ms": 700, "delay_answer_ms": 800})
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    await clock.timer_set(0.7)
    faults.clear()
    await asyncio.wait_for(client.answer(ApiKey.PRODUCE, 9), 10)


# --- throttle ---


async def test_a_throttled_client_is_told_so_and_then_muted(broker, faults, client, clock):
    faults.add({"api": "Produce", "throttle_ms": 900, "times": 1})
    answer = await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), 9)
    assert answer.throttle_time_ms == 900
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"b"))), version=9))
    async with connected(broker.server) as another:
        assert await produced(another, ("t", 1, batch(b"x"))) == [(1, 0)]
    assert end_offset(broker) == 1
    clock.advance(0.9)
    _, answer = await client.answer(ApiKey.PRODUCE, 9)
    assert (answer.throttle_time_ms, end_offset(broker)) == (0, 2)


# --- corrupt ---


async def test_a_corrupt_batch_has_a_wrong_checksum_and_the_next_fetch_is_right(broker, faults, client):
    await produced(client, ("t", 0, batch(b"a" * 50)))
    fault = faults.add({"topic": "t", "corrupt": True, "times": 1})
    # Nothing to corrupt, so it does not count.
    await fetched(client, fetch(("t", 0, 1)), version=6)
    assert fault.hits == 0
    answer, _ = await fetched(client, fetch(("t", 0, 0)), version=6)
    with pytest.raises(CorruptRecords):
        validate_batch(memoryview(answer.responses[0].partitions[0].records))
    answer, _ = await fetched(client, fetch(("t", 0, 0)), version=6)
    assert validate_batch(memoryview(answer.responses[0].partitions[0].records)).record_count == 1
    assert fault.hits == 1


# --- connections and the whole broker ---


async def test_new_connections_are_refused_and_old_ones_stay(broker, faults, client):
    await produced(client, ("t", 0, batch(b"a")))
    fault = faults.add({"refuse_connections": True, "times": 1})
    async with connected(broker.server) as another:
        assert await another.closed()
    assert fault.hits == 1
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, 0)]
    async with connected(broker.server) as another:
        assert await produced(another, ("t", 0, batch(b"a"))) == [(0, 0)]


async def test_a_stopped_broker_does_not_answer_and_continues_where_it_was(broker, faults, client, clock):
    async with connected(broker.server) as another:
        waiting = fetch(("t", 0, 0), max_wait_ms=100, session_epoch=-1)
        another.send(frame(ApiKey.FETCH, waiting, version=12))
        await clock.timer_set(0.1)  # under way before there was any fault
        faults.add({"api": "Produce", "nth": 1, "stop_ms": 6000})
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
        await clock.timer_set(6)
        clock.advance(1)
        assert await is_silent(client)
        assert await is_silent(another)
        clock.advance(5)
        await client.answer(ApiKey.PRODUCE, 9)
        await another.answer(ApiKey.FETCH, 12)
    assert end_offset(broker) == 1


async def test_a_stop_can_be_asked_for_at_once_and_ended_early(broker, faults, client, clock):
    await produced(client, ("t", 0, batch(b"a")))
    faults.stop(60_000)
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), version=9))
    assert await is_silent(client)
    faults.resume()
    await client.answer(ApiKey.PRODUCE, 9)


# --- one among others ---


async def test_a_fault_is_over_when_its_time_is(broker, faults, client, clock):
    fault = faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "for_ms": 2000})
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, NOT_LEADER)]
    clock.advance(2)
    assert await produced(client, ("t", 0, batch(b"a"))) == [(0, 0)]
    assert fault.describe() == {
        **{"id": 1, "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "for_ms": 2000},
        **{"seen": 1, "hits": 1, "over": True},
    }


async def test_the_first_that_fires_happens_and_the_next_one_after_it(broker, faults, client):
    faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    second = faults.add({"api": "Produce", "error": "KAFKA_STORAGE_ERROR", "times": 1})
    errors = [(await produced(client, ("t", 0, batch(b"a"))))[0][1] for _ in range(3)]
    assert errors == [NOT_LEADER, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert second.seen == 1


async def test_without_faults_requests_are_not_affected(broker, faults, client):
    fault = faults.add({"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"})
    await produced(client, ("t", 0, batch(b"a")))
    assert type(broker.server.dispatcher._routes[0, 9]) is not Route
    assert faults.remove(fault.number) is fault
    assert faults.remove(fault.number) is None
    await produced(client, ("t", 0, batch(b"a")))
    assert type(broker.server.dispatcher._routes[0, 9]) is Route


async def test_several_faults_are_added_together_or_not_at_all(faults):
    with pytest.raises(FaultError, match=r"^error: .*\(fault 2\)$"):
        faults.add_all([{"delay_ms": 5}, {"error": "NO"}])
    assert faults.all() == []

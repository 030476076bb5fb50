"""Clients that have quotas are measured, and throttled when they use too much; others are left alone."""

import asyncio

import pytest

from barnabas.broker.quotas.entities import Entity
from barnabas.broker.server.dispatch import Api
from barnabas.client.requests.data import produce
from barnabas.client.requests.shares import share_fetch
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from tests.broker.server.harness import connected, frame, serving
from tests.support.manual_clock import ManualClock

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LARGE = produce(("t", 0, b"x" * 15_000))
LIMITED = {"producer_byte_rate": "1000"}


def answered(request, message):
    return ProduceResponse(responses=[])


def unanswered(request, message):
    request.drop_answer()


PRODUCE = Api(ApiKey.PRODUCE, answered)
AT_ONCE = Api(ApiKey.HEARTBEAT, lambda request, message: HeartbeatResponse())


@pytest.fixture
def clock():
    return ManualClock()


async def test_a_client_that_sends_too_much_is_told_so_and_held_back(clock):
    async with serving(PRODUCE, AT_ONCE, clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), LIMITED)
        throttled = (await client.ask(ApiKey.PRODUCE, LARGE, 9)).throttle_time_ms
        assert 5000 < throttled < 5200
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, 4))
        (connection,) = server.connections
        clock.advance(throttled / 1000 - 0.001)
        await asyncio.sleep(0.05)
        assert connection._start == connection._end  # nothing was even read
        assert len(connection.requests) == 1  # the pause
        clock.advance(0.002)
        _, answer = await client.answer(ApiKey.HEARTBEAT, 4)
        assert answer.throttle_time_ms == 0


async def test_others_are_served_meanwhile(clock):
    async with serving(PRODUCE, clock=clock) as server, connected(server) as client, connected(server) as other:
        server.quotas.set(Entity(client_id="test"), LIMITED)
        await client.ask(ApiKey.PRODUCE, LARGE, 9)
        for number in range(3):
            other.send(frame(ApiKey.PRODUCE, LARGE, 9, number, client_id="other"))
            assert (await other.answer(ApiKey.PRODUCE, 9))[1].throttle_time_ms == 0


async def test_requests_that_came_together_wait_for_one_another(clock):
    """The second is started when its client is no longer throttled."""
    begun = []

    def appends(request, message):
        def append():
            request.connection.appended()
            request.answer(ProduceResponse(responses=[]))

        begun.append(request)
        request.connection.append_is_due()
        asyncio.get_running_loop().call_soon(append)

    async with serving(Api(ApiKey.PRODUCE, appends), clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), LIMITED)
        client.send(frame(ApiKey.PRODUCE, LARGE, 9, 1) + frame(ApiKey.PRODUCE, LARGE, 9, 2))
        first = (await client.answer(ApiKey.PRODUCE, 9))[1].throttle_time_ms
        waiting = asyncio.ensure_future(client.answer(ApiKey.PRODUCE, 9))
        await asyncio.sleep(0.02)
        assert len(begun) == 1
        clock.advance(first / 1000)
        assert (await waiting)[1].throttle_time_ms > first


async def test_a_producer_that_wants_no_answer_is_held_back_too(clock):
    async with (
        serving(Api(ApiKey.PRODUCE, unanswered), AT_ONCE, clock=clock) as server,
        connected(server) as client,
    ):
        server.quotas.set(Entity(client_id="test"), LIMITED)
        client.send(frame(ApiKey.PRODUCE, LARGE, 9) + frame(ApiKey.HEARTBEAT, HEARTBEAT, 4))
        waiting = asyncio.ensure_future(client.answer(ApiKey.HEARTBEAT, 4))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        clock.advance(6)
        await waiting


async def test_brokers_have_no_quotas(clock):
    async with serving(PRODUCE, clock=clock) as server, connected(server) as client:
        server.is_from_broker = lambda connection: True
        server.quotas.set(Entity(client_id="test"), LIMITED)
        assert (await client.ask(ApiKey.PRODUCE, LARGE, 9)).throttle_time_ms == 0


async def test_with_zookeeper_the_only_listener_is_not_only_for_brokers(clock):
    async with serving(PRODUCE, clock=clock, zookeeper_connect="127.0.0.1:1") as server, connected(server) as client:
        server.is_from_broker = lambda connection: True
        server.quotas.set(Entity(client_id="test"), LIMITED)
        assert (await client.ask(ApiKey.PRODUCE, LARGE, 9)).throttle_time_ms > 0


async def test_a_client_that_goes_while_it_is_held_back_leaves_nothing_behind(clock):
    async with serving(PRODUCE, clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), LIMITED)
        await client.ask(ApiKey.PRODUCE, LARGE, 9)
        (connection,) = server.connections
        connection.close()
        clock.advance(10)
        assert not server.connections


async def test_a_client_that_goes_before_it_would_be_held_back_leaves_nothing_behind(clock):
    begun, gone = asyncio.Event(), asyncio.Event()

    async def slow(request, message):
        begun.set()
        await gone.wait()
        return ProduceResponse(responses=[])

    async with serving(Api(ApiKey.PRODUCE, slow), clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), LIMITED)
        client.send(frame(ApiKey.PRODUCE, LARGE, 9))
        await begun.wait()
        (connection,) = server.connections
        connection.close()
        gone.set()
        (task,) = server.dispatcher._tasks
        await task
        await asyncio.sleep(0)  # what is done with its answer
        clock.advance(10)
        assert not connection.requests


async def test_what_a_member_of_a_share_group_is_given_counts_as_fetched(clock):
    """Its records are locked for it, so it gets them, and is held back afterwards."""

    def given(request, message):
        partition = PartitionData(
            partition_index=0,
            acknowledge_error_code=0,
            current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
            records=b"x" * 15_000,
            acquired_records=[],
        )
        topic = ShareFetchableTopicResponse(topic_id=bytes(16), partitions=[partition])
        return ShareFetchResponse(acquisition_lock_timeout_ms=0, responses=[topic], node_endpoints=[])

    async with serving(Api(ApiKey.SHARE_FETCH, given), clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), {"consumer_byte_rate": "1000"})
        answer = await client.ask(ApiKey.SHARE_FETCH, share_fetch("g", "m", 0), 2)
        assert 5000 < answer.throttle_time_ms < 5200
        assert len(answer.responses[0].partitions[0].records) == 15_000
        (connection,) = server.connections
        assert len(connection.requests) == 1  # the pause


async def test_a_client_that_uses_too_much_of_the_loops_time_is_throttled(clock):
    async def works(request, message):
        for _ in range(3):
            _busy(0.004)
            await asyncio.sleep(0)
        return HeartbeatResponse()

    async with serving(Api(ApiKey.HEARTBEAT, works), clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), {"request_percentage": "0.01"})
        answer = await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 4)
        assert answer.throttle_time_ms == 1000  # no longer than a sample


async def test_waiting_does_not_count_as_request_time(clock):
    async def waits(request, message):
        await asyncio.sleep(0.35)
        return HeartbeatResponse()

    async with serving(Api(ApiKey.HEARTBEAT, waits), clock=clock) as server, connected(server) as client:
        server.quotas.set(Entity(client_id="test"), {"request_percentage": "3"})  # 300 ms in ten seconds
        assert (await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, 4)).throttle_time_ms == 0


async def test_without_quotas_nothing_is_measured():
    async with serving(PRODUCE) as server:
        assert server.dispatcher.meters is None
        server.quotas.set(Entity(client_id="test"), LIMITED)
        assert server.dispatcher.meters is not None
        server.quotas.set(Entity(client_id="test"), {})
        assert server.dispatcher.meters is None
        server.quotas.set(Entity(ip="127.0.0.1"), {"connection_creation_rate": "1"})
        assert server.dispatcher.meters is None


def _busy(seconds):
    from time import perf_counter

    end = perf_counter() + seconds
    while perf_counter() < end:
        pass

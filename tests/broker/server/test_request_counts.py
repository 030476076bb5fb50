"""Requests are counted once metrics are wanted, some are timed, and clients notice none of it."""

import asyncio

import pytest

from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.observe import install, uninstall
from barnabas.broker.server.request_counts import RequestCounts
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.broker.server.harness import connected, frame, serving
from tests.broker.server.test_observe import PassingOn, at_once, in_a_task

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def a_little_later(request, message):
    asyncio.get_running_loop().call_soon(request.answer, HeartbeatResponse(error_code=7))


def in_steps(request, message):
    yield
    return HeartbeatResponse(error_code=7)


def counted(server):
    ticks = iter(range(1000))
    counts = RequestCounts(lambda: float(next(ticks)))
    counts.attach(server.dispatcher)
    return counts.apis[ApiKey.HEARTBEAT]


@pytest.mark.parametrize("handler", [at_once, in_a_task, a_little_later, in_steps])
async def test_every_request_is_counted_and_every_eighth_of_a_version_is_timed(handler):
    async with serving(Api(ApiKey.HEARTBEAT, handler)) as server:
        counts = counted(server)
        async with connected(server) as client:
            for _ in range(9):
                assert (await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=1)).error_code == 7
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=3)
        assert counts.total == 10
        assert counts.by_version == {1: 9, 3: 1}
        assert counts.errors == {7: 10}
        # The first and the ninth, and the first of the other version; the clock advances with each reading.
        assert list(counts.times) == [1.0, 1.0, 1.0]


async def test_a_timed_request_whose_client_goes_away_is_abandoned():
    abandoned = asyncio.Event()

    def never(request, message):
        request.on_abandon = abandoned.set

    async with serving(Api(ApiKey.HEARTBEAT, never)) as server:
        counts = counted(server)
        async with connected(server) as client:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            while not counts.total:  # noqa: ASYNC110
                await asyncio.sleep(0)
        await abandoned.wait()
        assert not counts.times


async def test_observers_come_and_go_and_the_counting_stays():
    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server:
        counts = counted(server)
        async with connected(server) as client:
            install(server.dispatcher, PassingOn())
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            uninstall(server.dispatcher)
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert (counts.total, counts.errors) == (2, {7: 2})
        assert len(counts.times) == 1

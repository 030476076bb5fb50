"""A request and its one answer."""

import asyncio

from structlog.testing import capture_logs

from barnabas.broker.server.dispatch import Api
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.broker.server.harness import connected, frame, serving

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def parking():
    """An API whose requests wait in a queue for the test to answer them."""
    requests = asyncio.Queue()
    return Api(ApiKey.HEARTBEAT, lambda request, message: requests.put_nowait(request)), requests


async def test_an_answer_goes_out_with_the_number_of_its_request():
    api, requests = parking()
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=41))
        (await requests.get()).answer(HeartbeatResponse())
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 41


async def test_a_request_may_have_no_answer():
    api, requests = parking()
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT) + frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=2))
        (await requests.get()).drop_answer()
        (await requests.get()).answer(HeartbeatResponse())
        assert (await client.answer(ApiKey.HEARTBEAT))[0] == 2


async def test_failing_closes_the_connection_for_a_reason():
    api, requests = parking()
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await requests.get()
        with capture_logs() as logs:
            request.fail("it had to be")
            assert await client.closed()
    assert [entry["reason"] for entry in logs] == ["it had to be"]


async def test_an_answer_that_cannot_be_encoded_closes_its_connection_and_does_not_raise():
    """A handler's bug may show only when its answer is encoded, long after the handler has returned."""
    api, requests = parking()
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await requests.get()
        with capture_logs() as logs:
            request.answer(HeartbeatResponse(error_code="not a number"))
            assert await client.closed()
    assert [entry["event"] for entry in logs] == ["request failed", "connection closed"]
    assert logs[0]["api"] == "Heartbeat"


async def test_on_abandon_is_called_once_if_the_client_goes_first():
    api, requests = parking()
    told = []
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await requests.get()
        gone = asyncio.Event()
        request.on_abandon = lambda: (told.append(request), gone.set())
        client.close()
        await gone.wait()
        request.answer(HeartbeatResponse())
    assert told == [request]


async def test_on_abandon_is_not_called_after_the_answer():
    api, requests = parking()
    told = []
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await requests.get()
        request.on_abandon = lambda: told.append(request)
        request.answer(HeartbeatResponse())
        await client.answer(ApiKey.HEARTBEAT)
    assert told == []

"""The seam for observers: they see requests and answers, may hold or replace them, and cost nothing when there is
none."""

import asyncio

import pytest

from barnabas.broker.server.dispatch import Api, Route
from barnabas.broker.server.observe import install, mute, uninstall
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.broker.server.harness import connected, frame, serving
from tests.support.manual_clock import ManualClock

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class PassingOn:
    """An observer that writes down what it sees, and changes nothing."""

    def __init__(self):
        self.seen = []

    def arrived(self, exchange):
        self.seen.append(("arrived", exchange.api_key.api_name, exchange.message.member_id))
        exchange.proceed()

    def answered(self, exchange, answer):
        self.seen.append(("answered", answer and answer.error_code))
        exchange.send(answer)

    def abandoned(self, exchange, reason):
        self.seen.append(("abandoned", reason))

    def misunderstood(self, connection, error):
        self.seen.append(("misunderstood", str(error)))


async def until(condition):
    """Let the loop turn until something holds; the test's own time limit ends it otherwise."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


def at_once(request, message):
    return HeartbeatResponse(error_code=7)


async def in_a_task(request, message):
    await asyncio.sleep(0)
    return HeartbeatResponse(error_code=7)


def later(request, message):
    asyncio.get_running_loop().call_soon(request.answer, HeartbeatResponse(error_code=7))


@pytest.mark.parametrize("handler", [at_once, in_a_task, later])
async def test_an_observer_sees_requests_and_answers_of_every_kind_of_handler(handler):
    observer = PassingOn()
    async with serving(Api(ApiKey.HEARTBEAT, handler)) as server, connected(server) as client:
        install(server.dispatcher, observer)
        assert (await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)).error_code == 7
    assert observer.seen == [("arrived", "Heartbeat", "m"), ("answered", 7)]


async def test_an_answer_that_is_not_due_is_seen_as_none():
    observer = PassingOn()
    async with serving(Api(ApiKey.HEARTBEAT, lambda request, message: request.drop_answer())) as server:
        async with connected(server) as client:
            install(server.dispatcher, observer)
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            client.writer.write_eof()
            assert await client.closed()
    assert observer.seen == [("arrived", "Heartbeat", "m"), ("answered", None)]


async def test_without_an_observer_routes_are_plain():
    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        observer = PassingOn()
        install(server.dispatcher, observer)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        uninstall(server.dispatcher)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert [type(route) for route in server.dispatcher._routes.values()] == [Route]
    assert len(observer.seen) == 2


async def test_a_request_that_is_held_holds_its_connection_and_no_other():
    class Holding(PassingOn):
        def __init__(self):
            super().__init__()
            self.held = asyncio.Queue()

        def arrived(self, exchange):
            self.held.put_nowait(exchange)

    observer = Holding()
    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        install(server.dispatcher, observer)
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=1))
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=2))
        held = await observer.held.get()
        uninstall(server.dispatcher)
        async with connected(server) as another:
            await another.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert observer.held.empty()
        held.proceed()
        assert [(await client.answer(ApiKey.HEARTBEAT))[0] for _ in range(2)] == [1, 2]


async def test_an_observer_may_answer_instead_of_the_handler():
    class Answering(PassingOn):
        def arrived(self, exchange):
            exchange.send(HeartbeatResponse(error_code=27))

    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        install(server.dispatcher, Answering())
        assert (await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)).error_code == 27


async def test_the_request_of_a_client_that_disconnects_is_abandoned():
    started, gone = asyncio.Event(), asyncio.Event()

    def waits(request, message):
        request.on_abandon = gone.set
        started.set()

    observer = PassingOn()
    async with serving(Api(ApiKey.HEARTBEAT, waits)) as server:
        install(server.dispatcher, observer)
        async with connected(server) as client:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            await started.wait()
        await gone.wait()
    assert observer.seen[1:] == [("abandoned", None)]


async def test_a_handler_that_fails_is_seen_once_with_the_reason():
    def fails(request, message):
        raise RuntimeError("out of order")

    observer = PassingOn()
    async with serving(Api(ApiKey.HEARTBEAT, fails)) as server, connected(server) as client:
        install(server.dispatcher, observer)
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        assert await client.closed()
    assert observer.seen[1:] == [("abandoned", "its request could not be handled")]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00\x00\x00\x0a\x00\x63\x00\x00\x00\x00\x00\x01\xff\xff", "no API has key 99 here"),
        (b"\x00\x00\x00\x0a\x00\x0c\x00\x09\x00\x00\x00\x01\xff\xff", "Heartbeat has no version 9 here"),
    ],
)
async def test_frames_that_are_not_requests_are_recognised(data, complaint):
    observer = PassingOn()
    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        install(server.dispatcher, observer)
        client.send(data)
        assert await client.closed()
    assert observer.seen == [("misunderstood", complaint)]


async def test_a_muted_connection_starts_nothing_until_its_time_is_over():
    clock = ManualClock()
    observer = PassingOn()

    class Muting(PassingOn):
        def answered(self, exchange, answer):
            exchange.send(answer)
            mute(exchange.connection, 5, clock.call_later)
            uninstall(server.dispatcher)

    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        install(server.dispatcher, Muting())
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        install(server.dispatcher, observer)
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        async with connected(server) as another:
            await another.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            await another.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert len(observer.seen) == 4
        clock.advance(5)
        await client.answer(ApiKey.HEARTBEAT)
    assert len(observer.seen) == 6


async def test_a_new_connection_may_be_refused():
    async with serving(Api(ApiKey.HEARTBEAT, at_once)) as server, connected(server) as client:
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        server.connection_filter = lambda peer: "not today"
        async with connected(server) as another:
            assert await another.closed()
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_a_paused_server_answers_no_requests_and_loses_none():
    started = []

    def waits(request, message):
        started.append(request)

    async with serving(Api(ApiKey.HEARTBEAT, waits)) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=1))
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=2))
        await until(lambda: started)
        server.pause()
        server.pause()
        started.pop().answer(HeartbeatResponse())
        async with connected(server) as another:  # it may connect, but is not served
            another.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=3))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.reader.read(1), 0.1)
            assert not started
            server.resume()
            assert (await client.answer(ApiKey.HEARTBEAT))[0] == 1
            await until(lambda: len(started) == 2)
            for request in started:
                request.answer(HeartbeatResponse())
            assert (await client.answer(ApiKey.HEARTBEAT))[0] == 2
            assert (await another.answer(ApiKey.HEARTBEAT))[0] == 3

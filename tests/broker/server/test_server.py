"""The server's limits: how many connections it accepts, how long it keeps idle ones, and how it stops."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from barnabas.broker.clock import SystemClock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.quotas.entities import Entity
from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.server import Server
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages import api_versions
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.broker.server.harness import Client, connected, frame, serving
from tests.support.manual_clock import ManualClock
from tests.support.ports import HeldPort
from tests.support.running_broker import running

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
AT_ONCE = Api(ApiKey.HEARTBEAT, lambda request, message: HeartbeatResponse())


@asynccontextmanager
async def connected_from(address, server):
    """A client whose own address is another one of this machine's."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.listeners[0].port, local_addr=(address, 0))
    except OSError:
        pytest.skip(f"this system has no {address}")
    client = Client(reader, writer)
    try:
        yield client
    finally:
        client.close()


async def test_when_max_connections_is_reached_the_next_one_waits_until_one_goes():
    async with serving(AT_ONCE, max_connections=2) as server:
        async with connected(server) as first, connected(server) as second:
            await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            await second.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            async with connected(server) as third:
                third.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
                for _ in range(20):
                    await second.ask(ApiKey.HEARTBEAT, HEARTBEAT)
                assert len(server.connections) == 2
                first.close()
                assert (await third.answer(ApiKey.HEARTBEAT))[0] == 1
                assert len(server.connections) == 2


async def test_waiting_connections_are_admitted_when_max_connections_is_raised(tmp_path):
    async with running(tmp_path) as broker:
        await broker.config_follower.alter_broker(None, lambda _: {"max.connections": "1"})
        async with connected(broker.server) as first, connected(broker.server) as second:
            request = api_versions.ApiVersionsRequest()
            await first.ask(ApiKey.API_VERSIONS, request)
            second.send(frame(ApiKey.API_VERSIONS, request))
            for _ in range(20):
                await first.ask(ApiKey.API_VERSIONS, request)
            assert len(broker.server.connections) == 1
            await broker.config_follower.alter_broker(None, lambda _: {})
            await second.answer(ApiKey.API_VERSIONS)


async def test_max_connections_counts_those_of_all_listeners():
    names = {"listeners": "A://127.0.0.1:0,B://127.0.0.1:0", "inter_broker_listener_name": "A"}
    names["listener_security_protocol_map"] = "A:PLAINTEXT,B:PLAINTEXT"
    async with serving(AT_ONCE, max_connections=1, **names) as server, connected(server) as first:
        await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.listeners[1].port)
        second = Client(reader, writer)
        second.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        for _ in range(20):
            await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert len(server.connections) == 1
        first.close()
        await second.answer(ApiKey.HEARTBEAT)
        second.close()


async def test_max_connections_per_ip_refuses_one_more_from_the_same_address():
    async with serving(AT_ONCE, max_connections_per_ip=1) as server, connected(server) as first:
        await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        with capture_logs() as logs:
            async with connected(server) as second:
                assert await second.closed()
        assert [(entry["event"], entry["reason"]) for entry in logs] == [
            ("connection refused", "max.connections.per.ip is reached")
        ]
        async with connected_from("127.0.0.2", server) as other:
            await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_a_connection_that_went_makes_room_for_its_address():
    async with serving(AT_ONCE, max_connections_per_ip=1) as server:
        for _ in range(3):
            async with connected(server) as client:
                await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
                (connection,) = server.connections
                connection.close()
                assert await client.closed()


@pytest.mark.parametrize("exception", ["127.0.0.1:2", "localhost:2"])
async def test_an_address_may_be_an_exception_from_max_connections_per_ip(exception):
    async with serving(
        AT_ONCE, max_connections_per_ip=0, max_connections_per_ip_overrides=f"192.0.2.1:5,{exception}"
    ) as server:
        async with connected(server) as first, connected(server) as second, connected(server) as third:
            await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            await second.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            assert await third.closed()


async def test_a_connection_that_is_silent_for_longer_than_connections_max_idle_ms_is_closed():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock, connections_max_idle_ms=60_000) as server:
        async with connected(server) as silent, connected(server) as busy:
            await silent.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            for _ in range(3):
                clock.advance(19)
                await busy.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            assert len(server.connections) == 2
            with capture_logs() as logs:
                clock.advance(10)
            assert [entry["reason"] for entry in logs] == ["idle"]
            assert await silent.closed()
            await busy.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_a_client_that_waits_for_an_answer_is_not_idle():
    clock = ManualClock()
    parked = asyncio.Queue()
    api = Api(ApiKey.HEARTBEAT, lambda request, message: parked.put_nowait(request))
    async with serving(api, clock=clock, connections_max_idle_ms=60_000) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await parked.get()
        clock.advance(600)
        request.answer(HeartbeatResponse())
        await client.answer(ApiKey.HEARTBEAT)


async def test_a_client_that_reads_a_long_answer_slowly_is_not_idle():
    clock = ManualClock()
    size = 20_000_000
    api = Api(ApiKey.SYNC_GROUP, lambda request, message: SyncGroupResponse(assignment=bytes(size)))
    async with serving(api, clock=clock, connections_max_idle_ms=60_000) as server:
        async with connected(server, receive_buffer=4096) as client:
            client.reader._limit = 4096  # so that what is not read here stays with the server
            message = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[])
            client.send(frame(ApiKey.SYNC_GROUP, message))
            for _ in range(4):
                await client.reader.readexactly(4_000_000)
                clock.advance(40)
            assert server.connections
            assert len(await client.reader.readexactly(size - 16_000_000)) > 0


async def test_nobody_is_idle_without_a_limit():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock, connections_max_idle_ms=-1) as server, connected(server) as client:
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        clock.advance(10**9)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)


async def test_socket_request_max_bytes_is_the_largest_frame_that_is_read():
    size = len(frame(ApiKey.HEARTBEAT, HEARTBEAT)) - 4
    async with serving(AT_ONCE, socket_request_max_bytes=size) as server, connected(server) as client:
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        with capture_logs() as logs:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id="test!"))
            assert await client.closed()
        assert logs[0]["reason"] == f"a frame of {size + 1} bytes"


async def test_stopping_closes_listeners_and_connections_and_ends_what_is_under_way():
    started, ended = asyncio.Event(), asyncio.Event()

    async def forever(request, message):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(Api(ApiKey.HEARTBEAT, forever)) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        await started.wait()
        port = server.listeners[0].port
        await server.stop()
        assert await client.closed()
        assert ended.is_set()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


async def test_either_all_listeners_are_bound_or_none():
    loop = asyncio.get_running_loop()
    free = HeldPort()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port, free_port = taken.getsockname()[1], free.number
        config = BrokerConfig(
            {
                "listeners": f"A://127.0.0.1:{free_port},B://127.0.0.1:{taken_port}",
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
                "inter.broker.listener.name": "A",
            }
        )
        server = Server(config, [], SystemClock(loop), loop)
        with pytest.raises(OSError, match=f"127.0.0.1:{taken_port}: Address already in use"):
            server.bind()
        socket.create_server(("127.0.0.1", free_port)).close()


# --- how fast connections may come ---

BOTH = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter_broker_listener_name": "INSIDE",
}


async def is_served(host, port, within=10.0):
    """Whether a client is answered in that time."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        async with asyncio.timeout(within):
            await Client(reader, writer).ask(ApiKey.HEARTBEAT, HEARTBEAT)
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
        return False
    finally:
        writer.close()
    return True


async def test_beyond_max_connection_creation_rate_a_listener_waits():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock, max_connection_creation_rate=1) as server:
        address = server.listeners[0].host, server.listeners[0].port
        for _ in range(10):
            assert await is_served(*address)
        reader, writer = await asyncio.open_connection(*address)
        asked = asyncio.ensure_future(Client(reader, writer).ask(ApiKey.HEARTBEAT, HEARTBEAT))
        await asyncio.sleep(0.05)
        assert not asked.done()
        server.accept_again()  # as when a connection is closed
        assert not server.listeners[0]._accepting
        clock.advance(1)
        await asked
        writer.close()


async def test_a_server_that_stops_accepts_no_waiting_client():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock, max_connection_creation_rate=1) as server:
        address = server.listeners[0].host, server.listeners[0].port
        for _ in range(10):
            assert await is_served(*address)
        reader, writer = await asyncio.open_connection(*address)
        while server.listeners[0]._held is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
        await server.disconnect()
        clock.advance(1)
        assert not server.connections
        assert await Client(reader, writer).closed()
        writer.close()


async def test_the_listener_of_brokers_does_not_wait_for_clients():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock, max_connection_creation_rate=1, **BOTH) as server:
        inside, outside = ((each.host, each.port) for each in server.listeners)
        assert all([await is_served(*outside) for _ in range(10)])
        assert not await is_served(*outside, within=0.1)
        assert all([await is_served(*inside) for _ in range(5)])


async def test_an_address_that_connects_too_often_is_closed_after_a_while():
    clock = ManualClock()
    async with serving(AT_ONCE, clock=clock) as server:
        server.quotas.set(Entity(ip="127.0.0.1"), {"connection_creation_rate": "1"})
        address = server.listeners[0].host, server.listeners[0].port
        assert all([await is_served(*address) for _ in range(10)])
        assert not await is_served(*address, within=0.1)
        reader, writer = await asyncio.open_connection(*address)
        await asyncio.sleep(0.05)
        clock.advance(1)
        assert await Client(reader, writer).closed()
        writer.close()
        clock.advance(10)
        assert await is_served(*address)


async def test_brokers_exceed_max_connections_and_the_longest_silent_client_is_closed():
    async with serving(AT_ONCE, max_connections=1, **BOTH) as server:
        inside, outside = ((each.host, each.port) for each in server.listeners)
        client = Client(*await asyncio.open_connection(*outside))
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        broker = Client(*await asyncio.open_connection(*inside))
        await broker.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert await client.closed()
        client.close()
        broker.close()


async def test_a_listener_may_have_a_limit_of_its_own():
    async with serving(AT_ONCE, **BOTH, **{"listener.name.outside.max.connections": 1}) as server:
        inside, outside = ((each.host, each.port) for each in server.listeners)
        client = Client(*await asyncio.open_connection(*outside))
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert not await is_served(*outside, within=0.1)
        assert await is_served(*inside)
        client.close()

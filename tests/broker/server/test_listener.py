"""Listeners: where they can be bound, and how they accept."""

import asyncio
import os
import socket
from contextlib import contextmanager, suppress

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import listener as listener_module
from barnabas.broker.server.dispatch import Api
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.broker.server.harness import Client, connected, frame, serving
from tests.support.manual_clock import ManualClock

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
AT_ONCE = Api(ApiKey.HEARTBEAT, lambda request, message: HeartbeatResponse())

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")


async def ask(host, port):
    reader, writer = await asyncio.open_connection(host, port)
    await Client(reader, writer).ask(ApiKey.HEARTBEAT, HEARTBEAT)
    writer.close()


async def test_several_listeners_each_with_its_name_serve_the_same():
    async with serving(
        AT_ONCE,
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    ) as server:
        assert [listener.name for listener in server.listeners] == ["INSIDE", "OUTSIDE"]
        assert server.listeners[0].port != server.listeners[1].port
        for listener in server.listeners:
            await ask(listener.host, listener.port)


async def test_a_port_of_0_is_a_free_one():
    async with serving(AT_ONCE) as server, serving(AT_ONCE) as other:
        assert 0 < server.listeners[0].port != other.listeners[0].port > 0


@needs_ipv6
async def test_an_ipv6_address():
    async with serving(AT_ONCE, listeners="PLAINTEXT://[::1]:0") as server:
        assert server.listeners[0].host == "::1"
        await ask("::1", server.listeners[0].port)


@needs_ipv6
async def test_no_host_means_every_interface_of_both_families():
    async with serving(AT_ONCE, listeners="PLAINTEXT://:0") as server:
        for host in ("127.0.0.1", "::1"):
            await ask(host, server.listeners[0].port)


async def test_no_host_on_a_system_without_ipv6(monkeypatch):
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with serving(AT_ONCE, listeners="PLAINTEXT://:0") as server:
        await ask("127.0.0.1", server.listeners[0].port)


async def test_a_name_with_addresses_of_both_families_is_bound_by_its_ipv4_one(monkeypatch):
    def both(host, port, **_):
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    with monkeypatch.context() as patch:
        patch.setattr(listener_module.socket, "getaddrinfo", both)
        serving_by_name = serving(AT_ONCE, listeners="PLAINTEXT://both.example:0")
        server = await serving_by_name.__aenter__()
    try:
        await ask("127.0.0.1", server.listeners[0].port)
    finally:
        await serving_by_name.__aexit__(None, None, None)


async def test_sockets_have_the_buffers_that_were_asked_for():
    async with serving(AT_ONCE, socket_send_buffer_bytes=50_000, socket_receive_buffer_bytes=60_000) as server:
        async with connected(server) as client:
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            (connection,) = server.connections
            for option, size in ((socket.SO_SNDBUF, 50_000), (socket.SO_RCVBUF, 60_000)):
                # Linux shows twice what was asked for.
                assert size <= connection._socket.getsockopt(socket.SOL_SOCKET, option) <= 2 * size
            assert connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_storm_of_connections_is_accepted_in_several_turns(monkeypatch):
    monkeypatch.setattr(listener_module, "_ACCEPTS_PER_TURN", 2)
    async with serving(AT_ONCE) as server:
        clients = [connected(server) for _ in range(7)]
        for client in [await each.__aenter__() for each in clients]:
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        assert len(server.connections) == 7
        for each in clients:
            await each.__aexit__(None, None, None)


async def test_without_a_free_descriptor_clients_wait_and_are_accepted_later():
    clock = ManualClock()
    with socket.socket() as late:
        async with serving(AT_ONCE, clock=clock) as server, connected(server) as first:
            await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            with no_free_descriptors(), capture_logs() as logs:
                late.connect(("127.0.0.1", server.listeners[0].port))
                late.sendall(frame(ApiKey.HEARTBEAT, HEARTBEAT))
                for _ in range(5):
                    await first.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            assert [entry["event"] for entry in logs] == ["accepting failed"]
            clock.advance(1)
            late.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(late, 100)


@contextmanager
def no_free_descriptors():
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 256), limits[1]))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

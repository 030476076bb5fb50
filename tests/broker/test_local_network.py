"""broker.local_network: cutting brokers of one process off from each other."""

import asyncio
import socket

import pytest

from barnabas.broker.local_network import LocalNetwork


@pytest.fixture
async def accepted():
    """A listener of broker 2, its port, and the connections that it accepted."""
    connections = asyncio.Queue()
    server = await asyncio.start_server(lambda *pair: connections.put_nowait(pair), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], connections
    server.close()


@pytest.fixture
async def network(accepted):
    network = LocalNetwork(asyncio.get_running_loop())
    network.listens(2, [accepted[0]])
    return network


def is_brokers(network, writer):
    return network.is_broker(writer.get_extra_info("peername"), writer.get_extra_info("sockname"))


async def test_a_connection_of_a_broker_is_known_as_such(network, accepted):
    port, connections = accepted
    sock = await network.of(1).connect("127.0.0.1", port)
    _, writer = await connections.get()
    assert is_brokers(network, writer)
    sock.close()
    assert not is_brokers(network, writer)


async def test_a_connection_of_anybody_else_is_not(network, accepted):
    port, connections = accepted
    _, client = await asyncio.open_connection("127.0.0.1", port)
    _, writer = await connections.get()
    assert not is_brokers(network, writer)
    client.close()


def connected_from(port, to):
    """The kernel gives connections to different addresses the same port now and then."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.connect(("127.0.0.1", to))
    return sock


async def test_connections_to_two_brokers_may_come_from_the_same_port(network, accepted):
    """The end of one does not make the other one anybody's: that broker's fetches would not count any more."""
    port, connections = accepted
    elsewhere = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    first = connected_from(0, port)
    second = connected_from(first.getsockname()[1], elsewhere.sockets[0].getsockname()[1])
    network.opened(first, 1, 2)
    network.opened(second, 3, 4)
    second.close()
    _, writer = await connections.get()
    assert is_brokers(network, writer)
    first.close()
    elsewhere.close()


async def test_cutting_ends_connections_and_prevents_new_ones(network, accepted):
    port, connections = accepted
    sock = await network.of(1).connect("127.0.0.1", port)
    reader, _ = await connections.get()
    network.cut(2, [1])
    assert await reader.read() == b""
    sock.close()
    with pytest.raises(OSError, match="between brokers 1 and 2 is cut"):
        await network.of(1).connect("127.0.0.1", port)


async def test_others_are_not_affected(network, accepted):
    network.cut(2, [1])
    (await network.of(3).connect("127.0.0.1", accepted[0])).close()


async def test_healing_lets_them_connect_again(network, accepted):
    network.cut(2, [1, 3])
    network.heal(2)
    (await network.of(1).connect("127.0.0.1", accepted[0])).close()

"""Connections to other brokers."""

import asyncio
import socket

import pytest

from barnabas.broker.network import Network


@pytest.fixture
async def listening():
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def name_of(monkeypatch, *addresses):
    """A network in which every name stands for these addresses, in this order."""
    loop = asyncio.get_running_loop()

    async def getaddrinfo(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port)) for address in addresses]

    network = Network(loop)
    monkeypatch.setattr(network, "_loop", _Loop(loop, getaddrinfo))
    return network


class _Loop:
    def __init__(self, loop, getaddrinfo):
        self.sock_connect, self.getaddrinfo = loop.sock_connect, getaddrinfo


async def test_an_address(listening):
    network = Network(asyncio.get_running_loop())
    (await network.connect("127.0.0.1", listening)).close()


async def test_every_address_of_a_name_is_tried(listening, monkeypatch):
    network = name_of(monkeypatch, "127.0.0.2", "127.0.0.1")
    with await network.connect("broker.example", listening) as sock:
        assert sock.getpeername() == ("127.0.0.1", listening)


async def test_nobody_at_any_address_is_what_the_first_one_says(listening, monkeypatch):
    """Who asks wants to know whether a broker refused: an address that cannot be used at all says nothing of that."""
    network = name_of(monkeypatch, "127.0.0.2", "127.255.255.255")
    with pytest.raises(ConnectionRefusedError):
        await network.connect("broker.example", listening)

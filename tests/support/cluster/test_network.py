"""Proxies between brokers: who is connected is known by the process, and each direction is cut by itself."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.cluster.network import REGISTRY, Network


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10)


def assert_silent(sock: socket.socket) -> None:
    sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sock.recv(10)
    sock.settimeout(10)


def test_passes_everything_on(network: Network, echo: int) -> None:
    with connected(network.proxy(2, echo)) as sock:
        sock.sendall(b"hello")
        assert sock.recv(10) == b"hello"


@pytest.mark.parametrize("direction", [(1, REGISTRY), (REGISTRY, 1)])
def test_what_is_sent_while_a_direction_is_cut_arrives_when_it_is_healed(
    network: Network, echo: int, direction: tuple[int | str, int | str]
) -> None:
    with connected(network.proxy(REGISTRY, echo, source=1)) as sock:
        network.cut(direction)
        sock.sendall(b"hello")
        assert_silent(sock)
        network.heal()
        assert sock.recv(10) == b"hello"


def test_a_connection_belongs_to_the_process_that_opened_it(network: Network, echo: int) -> None:
    network.pids[1] = os.getpid()
    port = network.proxy(2, echo)
    network.cut((3, 2), (2, 3))
    with connected(port) as sock:
        sock.sendall(b"hello")
        assert sock.recv(10) == b"hello"
    network.cut((1, 2))
    with connected(port) as sock:
        sock.sendall(b"hello")
        assert_silent(sock)


def test_the_end_of_a_connection_reaches_the_other_side_after_the_cut(network: Network, echo: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with connected(network.proxy(REGISTRY, listening.getsockname()[1], source=1)) as sock:
            far, _ = listening.accept()
            network.cut((1, REGISTRY))
            sock.sendall(b"last words")
        with far:
            assert_silent(far)
            network.heal((1, REGISTRY))
            assert far.recv(10) == b"last words"
            assert far.recv(10) == b""

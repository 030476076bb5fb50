import socket

import pytest

from tests.support.ports import HeldPort


def test_a_held_port_can_be_bound_repeatedly_by_whoever_asks_for_it():
    held = HeldPort()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", held.number)) as server:
            with socket.create_connection(("127.0.0.1", held.number)):
                server.accept()[0].close()


def test_nothing_listens_there():
    held = HeldPort()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", held.number))


def test_it_is_not_given_to_somebody_who_did_not_ask_for_it():
    held = HeldPort()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", held.number))  # without SO_REUSEADDR, as a client's port is given


def test_a_port_is_held_by_one():
    held = [HeldPort() for _ in range(200)]
    assert len({each.number for each in held}) == 200

"""Ports that stay free for a server that starts later."""

from __future__ import annotations

import random
import socket

# Below the range from which systems assign ports (Linux: from 32768). A client may keep trying to connect for a while
# where its broker was; it must not find there what another test has just opened, such as a socket of Spark's.
NUMBERS = range(20_000, 32_000)


class HeldPort:
    """A port of 127.0.0.1 that no other process gets as long as this object lives.

    It is bound and does not listen: connections to it are refused, and a server that asks for this very port, with
    SO_REUSEADDR as servers do, gets it, as often as it is restarted. A port that was merely free a moment ago may be
    taken by the time that a broker has started.
    """

    def __init__(self) -> None:
        self._socket = _bound_to_any()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.number: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.number}"

    def __del__(self) -> None:
        self._socket.close()


def _bound_to_any() -> socket.socket:
    # SO_REUSEADDR comes later, or two of us could hold the same port. Tests may seed the usual random numbers.
    chance = random.SystemRandom()
    while True:
        bound = socket.socket()
        try:
            bound.bind(("127.0.0.1", chance.choice(NUMBERS)))
        except OSError:
            bound.close()
        else:
            return bound

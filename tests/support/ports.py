"""Ports that stay free for somebody who comes later."""

from __future__ import annotations

import socket


class HeldPort:
    """A port of 127.0.0.1 that the system gives to nobody who asks for any port, as long as this object lives.

    It is bound and does not listen: who connects to it is refused, and a server that asks for this very port, with
    SO_REUSEADDR as servers do, gets it, as often as it is started anew. A port that was merely free a moment ago may
    be somebody else's by the time that a broker has started.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def __del__(self) -> None:
        self._socket.close()

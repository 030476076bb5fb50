"""The connections between the brokers of one process: whose they are, and which of them are cut.

Each broker connects through a network of its own (broker.network), so a test can cut one broker off from another, or
all of them from one, and heal that again. A connection that is cut ends at once for both sides.

A broker that is started again listens where it did before, even on a port that was picked for it. While it is down, its
ports stay bound: clients are refused, and nobody else gets the ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from collections.abc import Iterable

from barnabas.broker.network import Network

Address = tuple[str, int]


class LocalNetwork:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listening: dict[int, int] = {}  # ports, and who listens there
        self._links: weakref.WeakKeyDictionary[socket.socket, tuple[int, int]] = weakref.WeakKeyDictionary()
        # By both ends: the kernel gives connections to different ports the same port here.
        self._sockets: weakref.WeakValueDictionary[tuple[Address, Address], socket.socket]
        self._sockets = weakref.WeakValueDictionary()
        self._cut: set[tuple[int, int]] = set()
        self._addresses: dict[int, list[Address]] = {}  # of each broker, in the order of its listeners
        self._held: dict[int, list[socket.socket]] = {}

    def of(self, broker_id: int) -> Network:
        """The network as this broker sees it."""
        return _OwnNetwork(self, broker_id, self._loop)

    def listens(self, broker_id: int, ports: Iterable[int]) -> None:
        for port in ports:
            self._listening[port] = broker_id

    def hold_ports(self, broker_id: int) -> None:
        """Keep the ports of a broker that has gone, until it is back or `close`."""
        for address in self._addresses.get(broker_id, ()):
            with contextlib.suppress(OSError):  # another process was quicker
                self._held.setdefault(broker_id, []).append(_bound(address))

    def close(self) -> None:
        for broker_id in list(self._held):
            self.release_ports(broker_id)

    def release_ports(self, broker_id: int) -> None:
        for sock in self._held.pop(broker_id, ()):
            sock.close()

    def is_broker(self, peer: Address, own: Address) -> bool:
        """Whether a connection from `peer` to `own` was opened by a broker of this process."""
        sock = self._sockets.get((peer, own))
        return sock is not None and sock.fileno() != -1  # the port of a closed one may be reused by now

    # --- cutting and healing ---

    def cut(self, broker_id: int, others: Iterable[int]) -> None:
        """Cut a broker off from others, in both directions."""
        for other in others:
            self._cut |= {(broker_id, other), (other, broker_id)}
        for sock, link in list(self._links.items()):
            if link in self._cut:
                _end(sock)

    def heal(self, broker_id: int) -> None:
        """Connect a broker with all others again."""
        self._cut = {link for link in self._cut if broker_id not in link}

    def is_cut(self, broker_id: int, other: int) -> bool:
        return (broker_id, other) in self._cut

    # --- for the networks of the brokers ---

    def port_of(self, broker_id: int, number: int, wanted: int) -> int:
        """Which port a broker's listener gets, counted from 0: if it asks for any free port, the one that it had."""
        known = self._addresses.get(broker_id, [])
        return known[number][1] if not wanted and number < len(known) else wanted

    def listening(self, broker_id: int, number: int, address: Address) -> None:
        self._addresses.setdefault(broker_id, [])[number:] = [address]

    def target(self, broker_id: int, host: str, port: int) -> int:
        """Which broker is there. OSError if the connection to it is cut."""
        other = self._listening.get(port, -1)
        if (broker_id, other) in self._cut:
            raise OSError(f"the network between brokers {broker_id} and {other} is cut")
        return other

    def opened(self, sock: socket.socket, broker_id: int, other: int) -> None:
        ends = sock.getsockname()[:2], sock.getpeername()[:2]
        self._links[sock] = broker_id, other
        self._sockets[ends] = sock


class _OwnNetwork(Network):
    def __init__(self, all_of_it: LocalNetwork, broker_id: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._all = all_of_it
        self._broker_id = broker_id
        self._listeners = 0

    def listen(self, host: str, port: int, backlog: int) -> socket.socket:
        self._all.release_ports(self._broker_id)
        sock = super().listen(host, self._all.port_of(self._broker_id, self._listeners, port), backlog)
        self._all.listening(self._broker_id, self._listeners, sock.getsockname()[:2])
        self._listeners += 1
        return sock

    async def connect(self, host: str, port: int) -> socket.socket:
        other = self._all.target(self._broker_id, host, port)
        sock = await super().connect(host, port)
        try:
            self._all.target(self._broker_id, host, port)  # it may have been cut meanwhile
            self._all.opened(sock, self._broker_id, other)
        except OSError:
            sock.close()
            raise
        return sock


def _bound(address: Address) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        sock.shutdown(socket.SHUT_RDWR)

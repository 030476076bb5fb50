"""The seam to the network: where a broker listens, and opens connections to others.

Everything that connects or listens goes through one of these objects, so that a test can cut brokers off from each
other and a simulation can put a network of its own in their place.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any, Protocol

from barnabas.broker.server.addresses import host_and_port
from barnabas.broker.server.tls_socket import Socket


class Connector(Protocol):
    """What opens connections: a network, or one with TLS around it."""

    async def connect(self, host: str, port: int) -> Socket: ...


class Network:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connected non-blocking socket. OSError if nobody answers there, at any of the addresses that a name has."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:  # a name, which has to be resolved
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failures: list[OSError] = []
        for each in found:  # a name may stand for ::1 and 127.0.0.1, and a broker listen at one of them
            try:
                return await self._connect_to(*each)
            except OSError as error:
                failures.append(error)
        raise failures[0]  # of the address that the system prefers; others may not be usable at all

    async def _connect_to(self, family: int, kind: int, protocol: int, _: str, address: Any) -> socket.socket:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    def listen(self, host: str, port: int, backlog: int) -> socket.socket:
        """Bind to a host name or address; an empty host means all interfaces, of both families where the system can."""
        try:
            if not host and socket.has_dualstack_ipv6():
                sock = socket.create_server(("", port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True)
            else:
                family, address = _resolve(host, port)
                sock = socket.create_server(address, family=family, backlog=backlog)
        except OSError as error:
            reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise OSError(f"{host_and_port(host, port)}: {reason}") from error
        sock.setblocking(False)
        return sock


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """One address of a host: an IPv4 one if it has any, which JVM clients also try first."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, (str(address[0]), port)

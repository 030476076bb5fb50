"""A listening socket: accepts connections as long as there is room for them."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, Final

import structlog

from broker.config import Listener as ListenerConfig
from broker.server.addresses import host_and_port, unmapped
from broker.server.connection import Connection

if TYPE_CHECKING:
    from broker.server.server import Server

log = structlog.get_logger()

# How many connections are accepted in one turn of the loop: a storm of them must not stall those that are there.
_ACCEPTS_A_TURN: Final = 64


class Listener:
    """Where clients reach the broker, under a name of its own."""

    def __init__(self, server: Server, config: ListenerConfig, backlog: int) -> None:
        self.config = config
        self.name = config.name
        self._server = server
        self._socket = _bind(config.host, config.port, backlog)
        self.host, self.port = self._socket.getsockname()[:2]
        self._accepting = False

    def accept(self, wanted: bool) -> None:
        if wanted != self._accepting:
            self._accepting = wanted
            if wanted:
                self._server.loop.add_reader(self._socket, self._on_readable)
            else:
                self._server.loop.remove_reader(self._socket)

    def _on_readable(self) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            if not self._server.has_room():
                return
            try:
                sock, (host, port, *_) = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._server.out_of_descriptors(error)
                    return
                raise
            self._begin(sock, (unmapped(host), port))

    def _begin(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        objection = self._server.objection(peer)
        if objection is not None:
            log.warning("connection refused", peer=host_and_port(*peer), reason=objection)
            sock.close()
            return
        config = self._server.config
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option, size in (
                (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
                (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
            ):
                if size != -1:
                    sock.setsockopt(socket.SOL_SOCKET, option, size)
            self._server.remember(Connection(self._server, self, sock, peer))
        except OSError:  # the client has gone already
            sock.close()

    def close(self) -> None:
        self.accept(False)
        self._socket.close()


def _bind(host: str, port: int, backlog: int) -> socket.socket:
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
    """One address of a host: an IPv4 one if it has any, which is what clients on the JVM try first, too."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, (str(address[0]), port)

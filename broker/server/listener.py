"""A listening socket: accepts connections as long as there is room for them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from barnabas.broker.clock import Timer
from barnabas.broker.config import Listener as ListenerConfig
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.server.addresses import host_and_port, unmapped
from barnabas.broker.server.connection import Connection

if TYPE_CHECKING:
    from barnabas.broker.security.sasl.sasl import Sasl
    from barnabas.broker.security.tls import Tls
    from barnabas.broker.server.server import Server

log = structlog.get_logger()

# How many connections are accepted per turn of the loop: a burst must not stall existing ones.
_ACCEPTS_PER_TURN: Final = 64

Connect = Callable[["Server", "Listener", socket.socket, tuple[str, int]], Connection]


class Held(NamedTuple):
    sock: socket.socket
    timer: Timer


class Listener:
    """A named address where clients reach the broker."""

    def __init__(self, server: Server, config: ListenerConfig, backlog: int) -> None:
        """OSError if the address cannot be bound, SecurityError if its TLS settings cannot be used."""
        self.config = config
        self.name = config.name
        self._server = server
        self._connect: Connect = Connection
        self.tls: Tls | None = None
        if config.uses_tls:
            self._use_tls()
        self.sasl: Sasl | None = None
        if config.uses_sasl:
            self._use_sasl()
        self._socket = server.network.listen(config.host, config.port, backlog)
        self.host, self.port = self._socket.getsockname()[:2]
        self._accepting = False
        self._held: Held | None = None  # a connection that came too soon

    def accept(self, wanted: bool) -> None:
        if wanted and self._held is not None:
            return  # no other connection is accepted before that one
        if wanted != self._accepting:
            self._accepting = wanted
            if wanted:
                self._server.loop.add_reader(self._socket, self._on_readable)
            else:
                self._server.loop.remove_reader(self._socket)

    def _on_readable(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if not self._server.has_room(self):
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
            peer = unmapped(host), port
            waits_ms = self._server.waits_ms(self)
            if waits_ms:
                self._hold(sock, peer, waits_ms)
                return
            self._begin(sock, peer)

    def _hold(self, sock: socket.socket, peer: tuple[str, int], ms: int) -> None:
        """Accept nobody for a while, and then this one first."""

        def let_go() -> None:
            self._held = None
            self._begin(sock, peer)
            self._server.accept_again()

        self.accept(False)
        self._held = Held(sock, self._server.clock.call_later(ms / 1000, let_go))

    def _begin(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        waits_ms = self._server.waits_ms_of(peer[0])
        if waits_ms:
            # Kept open without an answer for a while, so that the client does not retry at once.
            self._server.clock.call_later(waits_ms / 1000, sock.close)
            return
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
            connection = self._connect(self._server, self, sock, peer)
            if self.sasl is not None:
                self._authenticate(connection, self.sasl)
            self._server.remember(connection)
        except OSError:  # the client is gone already
            sock.close()

    def _use_tls(self) -> None:
        from barnabas.broker.security.tls import Tls  # plaintext does not pay for it
        from barnabas.broker.server.tls_connection import Handshakes, TlsConnection

        self.tls = Tls(self._server.config.for_listener(self.name), self.name)
        self._connect = partial(TlsConnection, settings=self.tls, handshakes=Handshakes(self._server.loop))

    def _use_sasl(self) -> None:
        from barnabas.broker.security.sasl.sasl import Sasl

        self.sasl = Sasl(self._server, self.name)

    def _authenticate(self, connection: Connection, sasl: Sasl) -> None:
        """Authenticate a connection before anything else."""
        from barnabas.broker.security.sasl.authenticator import Authenticator

        connection.authenticator = Authenticator(sasl, self._server)
        connection.authenticator.begin(connection)

    def reconfigure(self) -> None:
        """The settings changed: connections from now on get the new ones."""
        if self.sasl is not None:
            try:
                self.sasl.reconfigure()
            except SecurityError as error:
                log.error("altered SASL settings cannot be used; the previous ones stay in force", reason=str(error))
        if self.tls is not None:
            self.tls.reconfigure(self._server.config.for_listener(self.name))

    def stop(self) -> None:
        """Accept nobody until `accept`; clients wait in the backlog."""
        self.accept(False)
        if self._held is not None:
            self._held.timer.cancel()
            self._held.sock.close()
            self._held = None

    def close(self) -> None:
        self.stop()
        self._socket.close()

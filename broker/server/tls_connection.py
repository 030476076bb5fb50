"""A client's connection with TLS: first a handshake, and from then on a connection like any other.

Until a client has sent a whole ClientHello, it costs only the memory for what it has sent. Handshakes take turns: the
server computes a signature in each, which may take milliseconds, and only a few of them progress in one turn of the
loop. A client that has started a handshake and does not finish it is disconnected. One that is silent is idle, like any
other: brokers watch each other through such connections.
"""

from __future__ import annotations

import socket
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.clock import Timer
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.tls import Tls
from barnabas.broker.server.connection import Connection, guess, send_file_copying
from barnabas.broker.server.tls_socket import TlsSocket

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.server.listener import Listener
    from barnabas.broker.server.server import Server

log = structlog.get_logger()

SECONDS_FOR_HANDSHAKE: Final = 30.0
_SECONDS_PER_TURN: Final = 0.002
_HANDSHAKE_RECORD: Final = 0x16
_RECORD_HEADER: Final = 5
_RECEIVED_AT_ONCE: Final = 16 * 1024 + _RECORD_HEADER


class Handshakes:
    """The connections whose handshake can continue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[TlsConnection] = deque()

    def go_on(self, connection: TlsConnection) -> None:
        if not self._waiting:
            self._loop.call_soon(self._turn)
        self._waiting.append(connection)

    def _turn(self) -> None:
        end = perf_counter() + _SECONDS_PER_TURN
        while self._waiting:
            connection = self._waiting.popleft()
            try:
                connection.shake_hands()
            except Exception:  # the others continue
                log.exception("a TLS handshake failed")
                connection.close("its TLS handshake could not be handled")
            if self._waiting and perf_counter() >= end:
                self._loop.call_soon(self._turn)
                return


class TlsConnection(Connection):
    __slots__ = ("_again", "_deadline", "_handshakes", "_hello", "_is_open", "_raw", "_settings", "_tls", "_waits")

    def __init__(
        self,
        server: Server,
        listener: Listener,
        sock: socket.socket,
        peer: tuple[str, int],
        settings: Tls,
        handshakes: Handshakes,
    ) -> None:
        self._raw = sock
        self._settings = settings
        self._handshakes = handshakes
        self._tls: TlsSocket | None = None  # since the handshake started
        self._hello = bytearray()  # what has arrived and has not been processed yet
        self._waits = False  # whether it is among the handshakes that can continue
        self._again = False  # whether it will be read again although the socket has nothing
        self._is_open = False  # whether the handshake is done
        self._deadline: Timer | None = None  # since the first bytes of the handshake, until it is done
        super().__init__(server, listener, sock, peer)
        self._send_file_slice = send_file_copying

    # --- the handshake ---

    def _on_readable(self) -> None:
        if self._is_open:
            super()._on_readable()
            if not self._end and not self.closed:
                self._release_buffer()  # half a record has arrived, and there is nothing to keep in it
            self._read_again()
            return
        try:
            received = self._raw.recv(_RECEIVED_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(f"receiving failed: {error.strerror}")
            return
        if not received:
            self.close("it disconnected during its TLS handshake" if self._hello or self._tls is not None else None)
            return
        if self._deadline is None:
            self._deadline = self._server.clock.call_later(SECONDS_FOR_HANDSHAKE, self._too_late)
        self._hello += received
        if self._hello[0] != _HANDSHAKE_RECORD and self._tls is None:
            # No answer: to a client that speaks plaintext, an alert would look like an endless frame.
            self.close(f"it does not speak TLS, and this listener does{guess(self._hello[:4])}")
            return
        if not self._waits and (self._tls is not None or _is_whole(self._hello)):
            self._waits = True
            self._read(False)  # until these bytes have been processed
            self._handshakes.go_on(self)

    def shake_hands(self) -> None:
        """Continue the handshake with what has arrived."""
        self._waits = False
        if self.closed:
            return
        received, self._hello = self._hello, bytearray()
        try:
            if self._tls is None:
                self._tls = TlsSocket(self._raw, self._settings.server_context, server_side=True)
                self._socket = self._tls
            is_done = self._tls.shake_hands(received)
            self._flush()
            if is_done and self.authenticator is None:
                self.belongs_to(self._settings.principal_of(self._tls.tls))
        except OSError as error:
            self.close(error.strerror)
            return
        except SecurityError as error:
            self.close(str(error))
            return
        if is_done:
            self._is_open = True
            self._end_deadline()
        self._read(True)

    def _too_late(self) -> None:
        self.close("its TLS handshake took too long")

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _flush(self) -> None:
        assert self._tls is not None
        try:
            self._tls.flush()
        except (BlockingIOError, InterruptedError):
            self._write(True)

    def _on_writable(self) -> None:
        if self._out:
            super()._on_writable()
            return
        self._write(False)
        try:
            self._flush()
        except OSError as error:
            self.close(f"sending failed: {error.strerror}")

    # --- what has already been received ---

    def _read(self, wanted: bool) -> None:
        super()._read(wanted)
        self._read_again()

    def _read_again(self) -> None:
        """Polling the socket does not show what TLS has buffered."""
        if self._reading and not self._again and self._tls is not None and self._tls.has_more:
            self._again = True
            self._server.loop.call_soon(self._on_more)

    def _on_more(self) -> None:
        self._again = False
        if self._reading and not self.closed:
            self._on_readable()

    def close(self, reason: str | None = None) -> None:
        if reason is not None and not self._is_open and not self.closed:
            self._server.failed_authentications[self.listener.name, "TLS"] += 1
        self._end_deadline()
        super().close(reason)


def _is_whole(hello: bytearray) -> bool:
    """Whether the first record is there. One that is too long to be a ClientHello is left to OpenSSL to refuse."""
    if len(hello) < _RECORD_HEADER:
        return False
    return len(hello) >= min(_RECORD_HEADER + int.from_bytes(hello[3:5]), _RECEIVED_AT_ONCE)

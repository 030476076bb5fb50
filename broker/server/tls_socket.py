"""A socket with TLS around it, with the methods of a socket that connections use.

Records are encrypted and decrypted in memory, so that one system call moves many of them, and so that the same object
works on any socket, of a loop or of a simulation. Nothing here blocks: what the socket does not accept waits.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol

_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)
# What is received with one call, for all connections of a thread: it is moved on at once.
_CIPHERTEXT: Final = memoryview(bytearray(256 * 1024))
# How much plaintext is encrypted at once.
_MOST_AT_ONCE: Final = 1024 * 1024
_NOTHING: Final = memoryview(b"")
# Alerts by which somebody refuses the certificate of this broker, as OpenSSL names them.
_OURS_IS_REFUSED: Final = {
    "SSLV3_ALERT_BAD_CERTIFICATE": "bad certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "unsupported certificate",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "certificate revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "certificate expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "certificate unknown",
    "TLSV1_ALERT_UNKNOWN_CA": "unknown authority",
}


class Socket(Protocol):
    """The methods of a socket that connections use."""

    def fileno(self) -> int: ...
    def getsockname(self) -> Any: ...
    def recv(self, size: int, flags: int = 0, /) -> bytes: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def send(self, data: Any, flags: int = 0, /) -> int: ...
    def close(self) -> None: ...


class TlsSocket:
    def __init__(
        self, sock: Socket, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None = None
    ) -> None:
        self._socket = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self._is_open = False  # whether the handshake is done
        self._unsent = _NOTHING  # ciphertext
        self._owed = 0  # how much plaintext is in there and was not reported as sent
        # Whether there may be more to read although the socket has nothing: the last call filled its buffer, or found
        # the end.
        self.has_more = False
        self.on_more: Callable[[], None] | None = None  # called when that becomes so

    def take_unsent(self) -> bytes:
        """The bytes to send, for a caller that sends them itself."""
        return self._outgoing.read()

    def fileno(self) -> int:
        return self._socket.fileno()

    def getsockname(self) -> Any:
        return self._socket.getsockname()

    # --- the handshake ---

    def shake_hands(self, received: bytes | bytearray = b"") -> bool:
        """Continue the handshake with more bytes from the peer. Returns whether it is done; OSError if it failed.

        What is to be sent is sent by `flush`.
        """
        self._incoming.write(received)
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise OSError(error.errno, reason_of(error)) from error
        self._is_open = True
        self.has_more = True  # the first records may have come with the end of the handshake
        return True

    # --- receiving ---

    def recv_into(self, buffer: memoryview, /) -> int:
        """As for a socket: BlockingIOError if there is nothing now, 0 at the end."""
        filled = 0
        size = len(buffer)
        self.has_more = False
        while filled < size:
            try:
                count: int = self.tls.read(size - filled, buffer[filled:])  # type: ignore[assignment]
            except ssl.SSLWantReadError:
                if filled:
                    return filled
                received = self._socket.recv_into(_CIPHERTEXT)
                if not received:
                    return 0
                self._incoming.write(_CIPHERTEXT[:received])
                continue
            except ssl.SSLError as error:
                raise OSError(error.errno, reason_of(error)) from error
            finally:
                if self._outgoing.pending:  # an alert, or new keys
                    with contextlib.suppress(OSError):
                        self.flush()
            if not count:
                self.has_more = True  # the end, which is reported each time; the socket may stay open, and not show it
                return filled
            filled += count
        self.has_more = True
        if self.on_more is not None:
            self.on_more()
        return filled

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Only to check whether anything has arrived (MSG_PEEK)."""
        return b"?" if self.has_more else self._socket.recv(size, flags)

    # --- sending ---

    def send(self, data: Any, flags: int = 0, /) -> int:
        """As for a socket: how many bytes were accepted. After a BlockingIOError, call it again with the same data."""
        if self._owed:
            self.flush()
            taken, self._owed = self._owed, 0
            return taken
        with memoryview(data) as view, view[:_MOST_AT_ONCE] as part:
            try:
                taken = self.tls.write(part)
            except ssl.SSLError as error:
                raise OSError(error.errno, reason_of(error)) from error
        if flags & _MSG_MORE and self._outgoing.pending < _MOST_AT_ONCE:
            return taken
        try:
            self.flush()
        except BlockingIOError:
            self._owed = taken
            raise
        return taken

    def flush(self) -> None:
        """Send what is encrypted; BlockingIOError if the socket does not accept all of it."""
        if self._outgoing.pending:
            new = self._outgoing.read()
            self._unsent = memoryview(bytes(self._unsent) + new if self._unsent else new)
        while self._unsent:
            sent = self._socket.send(self._unsent)
            self._unsent = self._unsent[sent:]
        self._unsent = _NOTHING

    def close(self) -> None:
        """Send the closing alert if that works at once, and close."""
        with contextlib.suppress(OSError, ValueError):
            if self._is_open:
                with contextlib.suppress(ssl.SSLError):
                    self.tls.unwrap()
            self.flush()
        self._socket.close()


def reason_of(error: ssl.SSLError) -> str:
    """What OpenSSL says, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if error.reason in _OURS_IS_REFUSED:
        return f"the other side does not accept the certificate of this broker: {_OURS_IS_REFUSED[error.reason]}"
    return f"TLS failed: {(error.reason or str(error)).lower().replace('_', ' ')}"

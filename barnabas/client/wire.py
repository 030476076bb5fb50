"""A socket that carries whole frames to a broker and back.

It does not negotiate versions, count requests or check answers: `client.connection` adds what a client needs,
`conformance.strict_wire` what a check needs, and tests send whatever they like.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import FRAME_SIZE, decode_answer, request_frame
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    import ssl

# Larger than any broker's largest batch in practice, and small enough for any machine.
LARGEST_ANSWER: Final = 1 << 29


class Wire:
    def __init__(self, host: str, port: int, timeout: float = 20.0, tls: ssl.SSLContext | None = None) -> None:
        self.timeout = timeout
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                self.socket = tls.wrap_socket(self.socket, server_hostname=host)
            except BaseException:
                self.socket.close()
                raise

    @property
    def has_buffered(self) -> bool:
        """Whether TLS has buffered data, which polling the socket does not show."""
        pending = getattr(self.socket, "pending", None)
        return pending is not None and pending() > 0

    def send(self, data: bytes, timeout: float | None = None) -> None:
        self.socket.settimeout(self.timeout if timeout is None else timeout)
        self.socket.sendall(data)

    def receive(self, timeout: float | None = None) -> memoryview | None:
        """The next frame without its size, or None if the broker has closed the connection.

        TimeoutError if it does not arrive in time, ConnectionError if the connection ends inside it, ProtocolError if
        its size cannot be right.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        size = self._read(FRAME_SIZE.size, deadline)
        if not size:
            return None
        if len(size) < FRAME_SIZE.size:
            raise ConnectionError(f"the connection was closed after {len(size)} bytes of a frame")
        (length,) = FRAME_SIZE.unpack(size)
        if not 0 <= length <= LARGEST_ANSWER:
            raise ProtocolError(f"a frame whose size is {length}")
        body = self._read(length, deadline)
        if len(body) < length:
            raise ConnectionError(f"the connection was closed {length - len(body)} bytes before the frame's end")
        return body

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        self.send(request_frame(key, message, version))
        return self.answer(key, version)

    def answer(self, key: ApiKey, version: int) -> Any:
        """The next answer, decoded to its last byte."""
        body = self.receive()
        if body is None:
            raise ConnectionError("the broker closed the connection")
        return decode_answer(body, key, version)

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, count: int, deadline: float) -> memoryview:
        """`count` bytes, or fewer if the broker closes the connection first."""
        data = memoryview(bytearray(count))
        position = 0
        while position < count:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                received = self.socket.recv_into(data[position:])
            except TimeoutError:
                raise TimeoutError(f"{position} of {count} bytes" if position else "") from None
            except ConnectionError:
                received = 0
            if not received:
                break
            position += received
        return data[:position]

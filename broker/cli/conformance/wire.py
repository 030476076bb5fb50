"""A connection to a broker of any make, frame by frame, that takes nothing for granted.

The command's own client forgives what does no harm; here every answer is held to the protocol: its correlation id, the
version of its header, and its body to the last byte.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from typing import Any, Final, NamedTuple

from broker.cli.client.connection import LARGEST_ANSWER, Address
from broker.cli.conformance.verdict import Failed
from protocol.api import ApiKey, request_header_version, response_header_version, response_type
from protocol.decoder import decoder
from protocol.encoder import encode
from protocol.errors import ProtocolError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.schema import Message

CLIENT_ID: Final = "barnabas-conformance"
_SIZE: Final = struct.Struct(">i")


class Deadline:
    """How long a check may take. Everything in it that waits asks here for how long it may."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._at - time.monotonic()

    def check(self) -> float:
        left = self.left
        if left <= 0:
            raise Failed("the check to end in time", f"nothing decided within its limit of {self.seconds:g} s")
        return left


class Asked(NamedTuple):
    key: ApiKey
    version: int
    correlation_id: int


class Wire:
    def __init__(self, address: Address, deadline: Deadline) -> None:
        self.address = address
        self.closed = False
        self._deadline = deadline
        self._correlation_id = 0
        self._asked: deque[Asked] = deque()
        try:
            self._socket = socket.create_connection(address, deadline.check())
        except OSError as error:
            raise Failed("a connection", f"none could be made: {error.strerror or error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # --- sending ---

    def frame(
        self,
        key: ApiKey,
        message: Message,
        version: int,
        *,
        correlation_id: int | None = None,
        client_id: str | None = CLIENT_ID,
        answered: bool = True,
    ) -> bytes:
        """A request as bytes, noted as one whose answer is due."""
        if correlation_id is None:
            self._correlation_id += 1
            correlation_id = self._correlation_id
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        if answered:
            self._asked.append(Asked(key, version, correlation_id))
        return framed(encode(header, request_header_version(key, version)) + encode(message, version))

    def send(self, key: ApiKey, message: Message, version: int, *, answered: bool = True) -> None:
        self.send_bytes(self.frame(key, message, version, answered=answered))

    def send_bytes(self, data: bytes) -> None:
        self._socket.settimeout(self._deadline.check())
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise Failed("the broker to read", "it takes no more bytes") from None
        except OSError:
            self.closed = True  # what the broker had to say before is still there to be read

    # --- receiving ---

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        self.send(key, message, version)
        return self.answer()

    def answer(self) -> Any:
        """The next answer, which has to be the one to the oldest question."""
        asked = self._asked[0]
        body = self.receive(f"an answer to {asked.key.api_name} v{asked.version}")
        self._asked.popleft()
        if body is None:
            raise Failed(f"an answer to {asked.key.api_name} v{asked.version}", "the connection was closed")
        return decode(body, asked)

    def receive(self, expected: str = "an answer") -> bytes | None:
        """The next frame without its size, or None if the broker has closed the connection."""
        size = self._read(_SIZE.size, expected)
        if len(size) < _SIZE.size:
            if size:
                raise Failed(expected, f"the connection was closed after {len(size)} bytes of a frame")
            return None
        (length,) = _SIZE.unpack(size)
        if not 0 <= length <= LARGEST_ANSWER:
            raise Failed(expected, f"a frame whose size is {length}")
        body = self._read(length, expected)
        if len(body) < length:
            raise Failed(expected, f"the connection was closed {length - len(body)} bytes before the frame's end")
        return body

    def _read(self, count: int, expected: str) -> bytes:
        data = bytearray()
        while len(data) < count:
            self._socket.settimeout(max(0.001, self._deadline.left))
            try:
                part = self._socket.recv(min(count - len(data), 1 << 20))
            except TimeoutError:
                seen = f"nothing within the check's limit of {self._deadline.seconds:g} s"
                raise Failed(expected, seen if not data else f"{seen} after {len(data)} of {count} bytes") from None
            except OSError:
                part = b""
            if not part:
                self.closed = True
                break
            data += part
        return bytes(data)

    def close(self) -> None:
        self.closed = True
        self._socket.close()


def framed(body: bytes) -> bytes:
    return _SIZE.pack(len(body)) + body


def decode(body: bytes, asked: Asked) -> Any:
    """An answer held to the protocol: its correlation id first, then its body to the last byte."""
    name = f"{asked.key.api_name} v{asked.version}"
    if len(body) < 4:
        raise Failed(f"an answer to {name}", f"a frame of {len(body)} bytes")
    (correlation_id,) = _SIZE.unpack_from(body)
    if correlation_id != asked.correlation_id:
        raise Failed(f"the answer to {name} with correlation id {asked.correlation_id}", f"one with {correlation_id}")
    try:
        _, position = decoder(ResponseHeader, response_header_version(asked.key, asked.version))(body, 0)
        message, position = decoder(response_type(asked.key), asked.version)(memoryview(body), position)
    except ProtocolError as error:
        raise Failed(f"an answer to {name} that can be parsed", str(error)) from None
    if position != len(body):
        over = len(body) - position
        raise Failed(f"an answer to {name} and not a byte more", f"{over} byte{'s' * (over > 1)} over")
    return message

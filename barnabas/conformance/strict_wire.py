"""A connection to any Kafka broker, frame by frame, that takes nothing for granted.

`client.connection` tolerates harmless mistakes. Here every response must follow the protocol: its correlation id, its
header version, and its body to the last byte.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final, NamedTuple

from barnabas.client.connection import Address
from barnabas.client.errors import NotAuthenticated
from barnabas.client.security import PLAINTEXT, Security, authenticate
from barnabas.client.wire import Wire
from barnabas.conformance.verdict import Failed
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import FRAME_SIZE, read_answer, request_frame
from barnabas.protocol.schema import Message

CLIENT_ID: Final = "barnabas-conformance"


class Deadline:
    """The time limit of a check. Every wait in the check asks here how much time is left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._at - time.monotonic()

    def check(self) -> float:
        left = self.left
        if left <= 0:
            raise Failed("the check to end in time", f"no result within its limit of {self.seconds:g} s")
        return left


class Asked(NamedTuple):
    key: ApiKey
    version: int
    correlation_id: int


class StrictWire:
    def __init__(self, address: Address, deadline: Deadline, security: Security = PLAINTEXT) -> None:
        self.address = address
        self.closed = False
        self._deadline = deadline
        self._correlation_id = 0
        self._asked: deque[Asked] = deque()
        try:
            self._wire = Wire(*address, deadline.check(), security.tls)
        except OSError as error:
            raise Failed("a connection", f"none could be made: {error.strerror or error}") from None
        try:
            authenticate(self._wire, security)
        except (NotAuthenticated, ProtocolError, OSError) as error:
            self._wire.close()
            raise Failed("the broker to let us in", str(error)) from None

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
        """Encode a request, and record that its response is due."""
        if correlation_id is None:
            self._correlation_id += 1
            correlation_id = self._correlation_id
        if answered:
            self._asked.append(Asked(key, version, correlation_id))
        return request_frame(key, message, version, correlation_id, client_id)

    def send(self, key: ApiKey, message: Message, version: int, *, answered: bool = True) -> None:
        self.send_bytes(self.frame(key, message, version, answered=answered))

    def send_bytes(self, data: bytes) -> None:
        left = self._deadline.check()
        try:
            self._wire.send(data, left)
        except TimeoutError:
            raise Failed("the broker to read", "it takes no more bytes") from None
        except OSError:
            self.closed = True  # what the broker sent before can still be read

    # --- receiving ---

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        self.send(key, message, version)
        return self.answer()

    def answer(self) -> Any:
        """The next response, which must belong to the oldest request."""
        asked = self._asked[0]
        body = self.receive(f"a response to {asked.key.api_name} v{asked.version}")
        self._asked.popleft()
        if body is None:
            raise Failed(f"a response to {asked.key.api_name} v{asked.version}", "the connection was closed")
        return decode(body, asked)

    def receive(self, expected: str = "a response") -> memoryview | None:
        """The next frame without its size, or None if the broker has closed the connection."""
        try:
            body = self._wire.receive(self._deadline.left)
        except TimeoutError as error:
            seen = f"nothing within the check's limit of {self._deadline.seconds:g} s"
            raise Failed(expected, f"{seen} after {error}" if str(error) else seen) from None
        except (OSError, ProtocolError) as error:
            self.closed = True
            raise Failed(expected, str(error)) from None
        if body is None:
            self.closed = True
        return body

    def close(self) -> None:
        self.closed = True
        self._wire.close()


def decode(body: bytes | memoryview, asked: Asked) -> Any:
    """Check a response: its correlation id first, then its body to the last byte."""
    name = f"{asked.key.api_name} v{asked.version}"
    if len(body) < FRAME_SIZE.size:
        raise Failed(f"a response to {name}", f"a frame of {len(body)} bytes")
    (correlation_id,) = FRAME_SIZE.unpack_from(body)
    if correlation_id != asked.correlation_id:
        raise Failed(f"the response to {name} with correlation id {asked.correlation_id}", f"one with {correlation_id}")
    try:
        answer = read_answer(body, asked.key, asked.version)
    except ProtocolError as error:
        raise Failed(f"a response to {name} that can be parsed", str(error)) from None
    if answer.left_over:
        over = f"{answer.left_over} byte{'s' * (answer.left_over > 1)} over"
        raise Failed(f"a response to {name} with no bytes left over", over)
    return answer.message

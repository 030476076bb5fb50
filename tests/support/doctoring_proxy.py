"""A proxy between a client and a broker that breaks one rule of the protocol, to see whether that is noticed.

It knows frames, and which answer belongs to which request; a `Doctor` changes what passes. The broker has to advertise
the proxy's address, so that every connection comes this way.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from barnabas.protocol.api import ApiKey, request_header_version, request_type, response_header_version, response_type
from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import RequestHeader, ResponseHeader


class Frame(NamedTuple):
    """A request, or the answer to it, without its size."""

    key: int
    version: int
    body: bytes
    behind: int = 0
    """How many requests wait behind an answer's own."""


class Doctor:
    """Leaves everything as it is. A rule is broken by a class that overrides one of these."""

    def request(self, frame: Frame) -> bytes:
        return frame.body

    def answers(self, frame: Frame) -> list[bytes] | None:
        """What is sent in place of an answer; None hangs up."""
        return [frame.body]


def change_request(frame: Frame, change: Any) -> bytes:
    """The request with `change` made to its message."""
    key = ApiKey(frame.key)
    header_version = request_header_version(key, frame.version)
    header, position = decoder(RequestHeader, header_version)(frame.body, 0)
    message, _ = decoder(request_type(key), frame.version)(frame.body, position)
    change(message)
    return encode(header, header_version) + encode(message, frame.version)


def change_answer(frame: Frame, change: Any) -> bytes:
    """The answer with `change` made to its message."""
    key = ApiKey(frame.key)
    header_version = response_header_version(key, frame.version)
    header, position = decoder(ResponseHeader, header_version)(frame.body, 0)
    try:
        message, _ = decoder(response_type(key), frame.version)(frame.body, position)
    except ProtocolError:  # an answer in another version than that of the request: UNSUPPORTED_VERSION
        return frame.body
    change(message)
    return encode(header, header_version) + encode(message, frame.version)


class DoctoringProxy:
    def __init__(self) -> None:
        self.doctor = Doctor()
        self.upstream = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self.upstream))
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, broker]
            asked: deque[tuple[int, int]] = deque()
            threading.Thread(target=self._requests, args=(client, broker, asked), daemon=True).start()
            threading.Thread(target=self._answers, args=(broker, client, asked), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: deque[tuple[int, int]]) -> None:
        def pass_on(body: bytes) -> list[bytes] | None:
            if len(body) < 4:
                return [body]
            key, version = struct.unpack_from(">hh", body)
            changed = self.doctor.request(Frame(key, version, body))
            asked.append((key, version))
            return [changed]

        _pump(client, broker, pass_on)

    def _answers(self, broker: socket.socket, client: socket.socket, asked: deque[tuple[int, int]]) -> None:
        def pass_on(body: bytes) -> list[bytes] | None:
            key, version = asked.popleft()
            return self.doctor.answers(Frame(key, version, body, len(asked)))

        _pump(broker, client, pass_on)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            each.close()

    def __enter__(self) -> DoctoringProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pump(source: socket.socket, sink: socket.socket, pass_on: Any) -> None:
    """Frames from one to the other, until one of them is gone; then the other goes too."""
    with suppress(OSError), source.makefile("rb") as reader:
        while len(size := reader.read(4)) == 4:
            (length,) = struct.unpack(">i", size)
            if not 0 <= length < 1 << 28:  # nothing that could be read; let the broker see it
                sink.sendall(size)
                break
            bodies = pass_on(reader.read(length))
            if bodies is None:
                break
            sink.sendall(b"".join(framed(body) for body in bodies))
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)

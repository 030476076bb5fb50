"""A connection that speaks frames to a broker of any make, byte by byte, without a client library in between."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from protocol.api import ApiKey, response_header_version, response_type
from protocol.decoder import decoder
from protocol.encoder import encode
from protocol.headers import RequestHeader, ResponseHeader
from protocol.schema import Message


def request_frame(key: ApiKey, message: Message, version: int, correlation_id: int = 1) -> bytes:
    flexible = version in type(message).flexible
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id="wire"
    )
    return framed(encode(header, 2 if flexible else 1) + encode(message, version))


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Wire:
    """One connection. Reading from it fails after `timeout` seconds, so that no test hangs."""

    def __init__(self, host: str, port: int, timeout: float = 20) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self._reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes | None:
        """The next frame without its size, or None if the broker has closed the connection."""
        try:
            size = self._reader.read(4)
            return self._reader.read(struct.unpack(">i", size)[0]) if len(size) == 4 else None
        except ConnectionResetError:
            return None

    def answer(self, key: ApiKey, version: int) -> Any:
        """The next answer, decoded to its last byte."""
        body = self.receive()
        if body is None:
            raise ConnectionError("the broker closed the connection")
        return decode_answer(body, key, version)

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        self.send(request_frame(key, message, version))
        return self.answer(key, version)

    def close(self) -> None:
        self._reader.close()
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def decode_answer(body: bytes, key: ApiKey, version: int) -> Any:
    _, pos = decoder(ResponseHeader, response_header_version(key, version))(body, 0)
    message, pos = decoder(response_type(key), version)(body, pos)
    if pos != len(body):
        raise AssertionError(f"{len(body) - pos} bytes follow the answer")
    return message

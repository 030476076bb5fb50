"""Frames: a size, a header and a message."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from barnabas.protocol.api import ApiKey, request_header_version, response_header_version, response_type
from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import Splices, encoder
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.headers import RequestHeader, ResponseHeader
from barnabas.protocol.schema import Message

FRAME_SIZE: Final = struct.Struct(">i")


class Answer(NamedTuple):
    correlation_id: int
    message: Any
    left_over: int
    """The number of bytes after the message."""


def framed(body: bytes | bytearray) -> bytes:
    return FRAME_SIZE.pack(len(body)) + body


def request_frame(
    key: ApiKey, message: Message, version: int, correlation_id: int = 1, client_id: str | None = "barnabas"
) -> bytes:
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    out = bytearray(FRAME_SIZE.size)
    splices: Splices = []
    encoder(RequestHeader, request_header_version(key, version))(header, out, splices)
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise TypeError(f"{type(message).__name__} holds records that are in a file")
    FRAME_SIZE.pack_into(out, 0, len(out) - FRAME_SIZE.size)
    return bytes(out)


def read_answer(body: bytes | memoryview, key: ApiKey, version: int) -> Answer:
    """Decode the response in a frame, without the frame's size. Raises ProtocolError if it is malformed.

    Records are views into `body` if that is a memoryview.
    """
    header, position = decoder(ResponseHeader, response_header_version(key, version))(body, 0)
    message, position = decoder(response_type(key), version)(body, position)
    return Answer(header.correlation_id, message, len(body) - position)


def decode_answer(body: bytes | memoryview, key: ApiKey, version: int) -> Any:
    """Decode a response that fills its frame. Raises ProtocolError if bytes are left over."""
    answer = read_answer(body, key, version)
    if answer.left_over:
        raise ProtocolError(f"{answer.left_over} bytes follow the response")
    return answer.message

"""What consumers send each other through JoinGroup and SyncGroup. The broker passes it on unread.

Each message follows its version number. Later versions only append fields, so a message newer than the newest version
known here is read as that version, and the rest is ignored.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from barnabas.protocol.decoder import decoder
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Bytes, Int32, Message, String, Struct, field

M = TypeVar("M", bound=Message)

_VERSION: Final = struct.Struct(">h")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[String] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = field("1+", default=())
    generation_id: Int32 = field("2+", default=-1)
    rack_id: String | None = field("3+", nullable="3+", default=None)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[TopicPartition] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)


class TopicPartition(Struct):
    topic: String = field("0+")
    partitions: list[Int32] = field("0+")


def with_version(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + encode(message, version)


def read_with_version(message: type[M], data: bytes) -> M:
    """Decode what `with_version`, or another client, wrote. Raises ProtocolError if it is malformed."""
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{message.__name__}: {len(data)} bytes are too few for its version")
    (version,) = _VERSION.unpack_from(data)
    if version < message.versions.lowest:
        raise ProtocolError(f"{message.__name__} has no version {version}")
    value, _ = decoder(message, min(version, message.versions.highest))(data, _VERSION.size)
    return value

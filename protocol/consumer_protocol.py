"""What consumers tell each other through JoinGroup and SyncGroup, which a broker passes on unread.

Both stand behind the number of their version. A later version only appends fields, so whoever meets one that is newer
than the newest known here reads it as that one and leaves the rest.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from protocol.decoder import decoder
from protocol.encoder import encode
from protocol.errors import ProtocolError
from protocol.schema import Bytes, Int32, Message, String, Struct, field

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
    """What `with_version` wrote, here or elsewhere; ProtocolError if it is nothing of the kind."""
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{message.__name__}: {len(data)} bytes are too few for its version")
    (version,) = _VERSION.unpack_from(data)
    if version < message.versions.lowest:
        raise ProtocolError(f"{message.__name__} has no version {version}")
    value, _ = decoder(message, min(version, message.versions.highest))(data, _VERSION.size)
    return value

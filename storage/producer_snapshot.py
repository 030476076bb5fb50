"""Producer snapshots, `<offset>.snapshot`: the producers' state in the log up to that offset.

    version: int16 = 1
    crc: uint32, CRC-32C of what follows
    count: int32, then for each producer 46 bytes:
        producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
        coordinator epoch int32, first offset of the open transaction int64 (-1: none)

A snapshot saves a scan of the log. A torn one fails its checksum and is deleted; then an older one is used.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.protocol.records.checksum import crc32c
from barnabas.storage.errors import CorruptFile

_VERSION: Final = 1
_PREFIX: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class SnapshotEntry(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _PREFIX.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    start = _PREFIX.size + _COUNT.size
    if len(data) < start:
        raise CorruptFile(f"the producer snapshot has only {len(data)} bytes")
    version, crc = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise CorruptFile(f"the producer snapshot has version {version}")
    if crc32c(memoryview(data)[_PREFIX.size :]) != crc:
        raise CorruptFile("the producer snapshot does not match its checksum")
    (count,) = _COUNT.unpack_from(data, _PREFIX.size)
    if len(data) != start + count * _ENTRY.size:
        raise CorruptFile(f"the producer snapshot has {len(data)} bytes for {count} producers")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(memoryview(data)[start:])]

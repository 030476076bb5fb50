"""Which partition a key belongs to: the same as for the Java client, so that records of one key stay together."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_32_BITS: Final = 0xFFFFFFFF


@lru_cache(maxsize=100_000)
def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 with the seed that Kafka's clients share, as an unsigned number."""
    whole = len(data) & ~3
    digest = _SEED ^ len(data)
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _32_BITS
        word = (word ^ word >> 24) * _MULTIPLIER & _32_BITS
        digest = (digest * _MULTIPLIER & _32_BITS) ^ word
    if whole < len(data):
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _32_BITS
    digest = (digest ^ digest >> 13) * _MULTIPLIER & _32_BITS
    return digest ^ digest >> 15

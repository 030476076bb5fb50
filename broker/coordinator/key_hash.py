"""Which partition of its topic a coordinator's key belongs to."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_SHORT: Final = 100  # characters of a group's or a transactional id


def partition_of(key: str, partitions: int) -> int:
    """As every client and broker computes it: the absolute value of Java's String.hashCode."""
    # Long ids are not worth the memory.
    signed = _remembered_hash_code(key) if len(key) <= _SHORT else _hash_code(key)
    return (0 if signed == -(2**31) else abs(signed)) % partitions


def _hash_code(key: str) -> int:
    value = 0
    utf16 = key.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(utf16), 2):
        value = (31 * value + int.from_bytes(utf16[position : position + 2], "big")) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


_remembered_hash_code = lru_cache(10_000)(_hash_code)

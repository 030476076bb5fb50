"""Which partition of its topic a coordinator's key belongs to."""

from __future__ import annotations

import struct
from functools import lru_cache
from operator import mul
from typing import Final

_SHORT: Final = 100  # characters of a group's or a transactional id
# Long ids are hashed in strides: a loop over 32,767 characters would hold up every other client.
_STRIDE: Final = 256
_POWERS: Final = [pow(31, exponent, 2**32) for exponent in reversed(range(_STRIDE))]
_AFTER_STRIDE: Final = pow(31, _STRIDE, 2**32)


def partition_of(key: str, partitions: int) -> int:
    """As every client and broker computes it: the absolute value of Java's String.hashCode."""
    # Long ids are not worth the memory.
    signed = _remembered_hash_code(key) if len(key) <= _SHORT else _hash_code(key)
    return (0 if signed == -(2**31) else abs(signed)) % partitions


def _hash_code(key: str) -> int:
    utf16 = key.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(utf16) // 2}H", utf16)
    first = len(units) % _STRIDE
    value = 0
    for unit in units[:first]:
        value = 31 * value + unit & 0xFFFFFFFF
    for position in range(first, len(units), _STRIDE):
        value = value * _AFTER_STRIDE + sum(map(mul, units[position : position + _STRIDE], _POWERS)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


_remembered_hash_code = lru_cache(10_000)(_hash_code)

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
# Of long ids, the hashes of this many are remembered.
_FEW: Final = 8


def partition_of(key: str, partitions: int) -> int:
    """As every client and broker computes it: the absolute value of Java's String.hashCode."""
    signed = _remembered_hash_code(key) if len(key) <= _SHORT else _hash_code(key)
    return (0 if signed == -(2**31) else abs(signed)) % partitions


def _hash_code(key: str) -> int:
    whole = len(key) // _STRIDE * _STRIDE
    value = _hash_of_strides(key[:whole]) if whole else 0
    for unit in _units(key[whole:]):
        value = 31 * value + unit & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


@lru_cache(_FEW)
def _hash_of_strides(start: str) -> int:
    """The hash of the start of a long key, which those that differ only at their ends share: partitions of a group."""
    units = _units(start)
    first = len(units) % _STRIDE  # more than none if characters have two units
    value = 0
    for unit in units[:first]:
        value = 31 * value + unit & 0xFFFFFFFF
    for position in range(first, len(units), _STRIDE):
        value = value * _AFTER_STRIDE + sum(map(mul, units[position : position + _STRIDE], _POWERS)) & 0xFFFFFFFF
    return value


def _units(text: str) -> tuple[int, ...]:
    """The characters as Java has them, in UTF-16."""
    utf16 = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(utf16) // 2}H", utf16)


_remembered_hash_code = lru_cache(10_000)(_hash_code)

"""The order in which Java's hash tables list their keys.

Kafka's uniform assignor serves members and topics in the order of a HashMap, so who gets what depends on it. That order
is a function of the keys and of the table's capacity; keys that share a slot are listed in the order in which they were
added. It survives copies into tables of any capacity, since a larger table only splits the slots of a smaller one. So
a dict in the order of insertion says all that is needed, and these functions list it as Java does.

Kafka adds members to such a table in the order of another one, the TimelineHashMap that the group keeps its members in:
`timeline_order`.

A slot with nine keys or more may become a tree, whose order is another one. Random ids do not come to that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, TypeVar, cast

Key = TypeVar("Key")

_MOST_KEPT: Final = 10_000
_LONGEST_KEPT: Final = 100  # characters; an id may have 32,767


def in_hash_order(keys: Collection[Key], hash_of: Callable[[Key], int], capacity: int = 16) -> list[Key]:
    """The keys as a HashMap, or a HashSet, lists them after they were added one by one in the order given.

    `capacity`, a power of two, is what the table began with.
    """
    if len(keys) < 2:
        return list(keys)
    while len(keys) * 4 > capacity * 3:  # the load factor, 0.75
        capacity *= 2
    mask = capacity - 1
    slots = [(code ^ code >> 16) & mask for code in map(hash_of, keys)]
    return _by_slot(list(keys), slots)


def _by_slot(keys: Sequence[Key], slots: Sequence[int]) -> list[Key]:
    """Keys that share a slot keep their order."""
    return [keys[index] for index in sorted(range(len(keys)), key=slots.__getitem__)]


def timeline_order(member_ids: Collection[str]) -> list[str]:
    """The members of a group as its TimelineHashMap lists them, given in the order in which they joined.

    The table doubles when an entry is put into it that would not fit if it were new, and an update puts, too: hence the
    capacity for one more than there are. (It never shrinks; a group that was larger may have another order in Kafka.)
    """
    capacity = 2
    while (len(member_ids) + 1) * 3 > capacity * 4:
        capacity *= 2
    shift = 65 - capacity.bit_length()

    newest_first = list(member_ids)[::-1]
    slots = [_spread(code) >> shift for code in map(string_hash, newest_first)]
    return _by_slot(newest_first, slots)


def _spread(code: int) -> int:
    signed = code - (1 << 32) if code >> 31 else code
    return signed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF


class _StringHashes(dict[str, int]):
    """Strings and their hashes. A group's members are hashed again and again, so those of short strings are kept."""

    def __missing__(self, text: str) -> int:
        code = 0
        for unit in text.encode() if text.isascii() else utf16_units(text):
            code = (31 * code + unit) & 0xFFFFFFFF
        if len(text) <= _LONGEST_KEPT:
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[text] = code
        return code


string_hash: Final = _StringHashes().__getitem__
"""String.hashCode, as an unsigned number."""


def utf16_units(text: str) -> tuple[int, ...]:
    """What Java calls the characters of a string, and compares strings by."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(encoded) // 2}H", encoded)


def topic_id_hash(topic_id: bytes) -> int:
    """Uuid.hashCode, as an unsigned number."""
    first, second, third, fourth = struct.unpack(">4I", topic_id)
    return cast(int, first ^ second ^ third ^ fourth)


def partition_hash(partition: int) -> int:
    """Integer.hashCode."""
    return partition


def topic_partition_hash(partition: tuple[bytes, int]) -> int:
    """TopicIdPartition.hashCode, as an unsigned number."""
    topic_id, index = partition
    return (31 * topic_id_hash(topic_id) + index) & 0xFFFFFFFF


class HashTable(Generic[Key]):
    """A HashSet that is changed between listings: it grows with its keys, and does not shrink again.

    Or a HashMap that is filled by `computeIfAbsent`, which puts a new key before the others of its slot, and makes room
    before it looks.
    """

    __slots__ = ("_capacity", "_hash_of", "_keys", "_newest_first")

    def __init__(
        self, hash_of: Callable[[Key], int], expected: int | None = None, *, newest_first: bool = False
    ) -> None:
        """`expected` is for how many keys Kafka makes it; None is Java's default."""
        self._hash_of = hash_of
        self._newest_first = newest_first
        self._keys: dict[Key, None] = {}
        wanted = 16 if expected is None else int((expected + 1) / 0.75 + 1)
        self._capacity = 1 << (wanted - 1).bit_length()

    def add(self, key: Key) -> None:
        if self._newest_first:
            self._make_room()
            self._keys[key] = None
        else:
            self._keys[key] = None
            self._make_room()

    def _make_room(self) -> None:
        if len(self._keys) * 4 > self._capacity * 3:
            self._capacity *= 2

    def remove(self, key: Key) -> None:
        del self._keys[key]

    def __contains__(self, key: Key) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def listed(self) -> list[Key]:
        mask = self._capacity - 1

        def slot(key: Key) -> int:
            code = self._hash_of(key)
            return (code ^ code >> 16) & mask

        return sorted(reversed(self._keys) if self._newest_first else self._keys, key=slot)

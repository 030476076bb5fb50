"""Ways to damage a request: fields with wrong values, wrong counts and lengths, wrong bytes."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from barnabas.protocol.codegen import is_number
from barnabas.protocol.schema import BYTES, RECORDS, STRING, Struct, StructType, WireType, wire_types
from tests.fuzz.values import TEXTS, interesting_number

_HOSTILE_COUNTS = (1, 2, 127, 128, 1000, 65_536, 2**20, 2**28, 2**31 - 2)
_HOSTILE_INTS = (0, 1, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2)
_HOSTILE_VARINTS = (
    *(b"\0", b"\1", b"\x7f", b"\x80\1", b"\xff\x7f"),
    *(b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff" * 10),
)


class LyingList(list[Any]):
    """A list that claims another number of elements than it has; the encoder writes that number as the count."""

    claims = 0

    def __len__(self) -> int:
        return self.claims


class LyingBytes(bytes):
    claims = 0

    def __len__(self) -> int:
        return self.claims


class LyingText(str):
    claims = 0

    def encode(self, *arguments: Any) -> bytes:
        encoded = LyingBytes(super().encode())
        encoded.claims = self.claims
        return encoded


def damage_fields(random: Random, message: Struct, version: int) -> None:
    """Change one to three fields, somewhere in the message."""
    places = list(_places(message, version))
    for struct_, name, wire_type in random.sample(places, min(len(places), random.choice((1, 1, 2, 3)))):
        setattr(struct_, name, _damaged(random, getattr(struct_, name), wire_type))


def _places(message: Any, version: int) -> list[tuple[Struct, str, Any]]:
    found: list[tuple[Struct, str, Any]] = []
    for name, wire_type in wire_types(type(message)).items():
        if version not in type(message).fields[name].versions:
            continue
        found.append((message, name, wire_type))
        value = getattr(message, name)
        if isinstance(value, Struct):
            found += _places(value, version)
        elif isinstance(value, list) and isinstance(wire_type[0], StructType):
            for item in value[:5]:
                found += _places(item, version)
    return found


def _damaged(random: Random, value: Any, wire_type: Any) -> Any:
    if isinstance(wire_type, list):
        return _damaged_list(random, value or [], may_lie=not is_number(wire_type[0]))
    if isinstance(wire_type, StructType):
        return random.choice((None, value))
    if wire_type is STRING:
        if random.random() < 0.3:
            lie = LyingText(value or "")
            lie.claims = random.choice(_HOSTILE_COUNTS)
            return lie
        return random.choice(TEXTS)
    if wire_type in (BYTES, RECORDS):
        lie_of_bytes = LyingBytes(value or b"")
        lie_of_bytes.claims = random.choice(_HOSTILE_COUNTS)
        return random.choice((None, b"", lie_of_bytes, random.randbytes(50)))
    return _damaged_scalar(random, value, wire_type)


def _damaged_list(random: Random, value: list[Any], *, may_lie: bool) -> Any:
    """Numbers are packed all at once, so their count cannot be wrong."""
    chance = random.random()
    if chance < 0.3 and may_lie:
        lie = LyingList(value)
        lie.claims = random.choice(_HOSTILE_COUNTS)
        return lie
    if chance < 0.5:
        return value * random.choice((2, 3, 50))  # the same again
    if chance < 0.51 and value:
        return value[:3] * 1000
    return random.choice((None, [], value[:1], list(reversed(value))))


def _damaged_scalar(random: Random, value: Any, wire_type: WireType) -> Any:
    if wire_type.name == "bool":
        return not value
    if wire_type.name == "float64":
        return random.choice((0.0, float("nan"), float("-inf")))
    if wire_type.name == "uuid":
        return random.choice((bytes(16), b"\xff" * 16, random.randbytes(16)))
    return interesting_number(random, wire_type)


def damage_bytes(random: Random, frame: bytes) -> bytes:
    """Change the bytes of a frame. Its size is mostly corrected, so that what follows it is understood."""
    data = bytearray(frame)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        _damage_once(random, data)
    if len(data) >= 4 and random.random() < 0.95:
        struct.pack_into(">i", data, 0, len(data) - 4)
    return bytes(data)


def _damage_once(random: Random, data: bytearray) -> None:
    # Most of what matters is near the beginning, behind the size.
    at = random.randrange(4, max(5, min(len(data), 400)))
    match random.randrange(8):
        case 0 | 1:
            if at < len(data):
                data[at] ^= 1 << random.randrange(8)
        case 2:
            data[at : at + 4] = struct.pack(">I", random.choice(_HOSTILE_INTS))
        case 3:
            data[at : at + 1] = random.choice(_HOSTILE_VARINTS)
        case 4:
            del data[random.randrange(4, len(data) + 1) :]
        case 5:
            data += random.choice((b"\0", b"\xff", random.randbytes(20), bytes(5000)))
        case 6:
            del data[at : at + random.choice((1, 2, 4, 8))]
        case _:
            data[at:at] = random.randbytes(random.choice((1, 2, 4)))

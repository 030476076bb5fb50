"""Random values of any message in any version, made from the message's own declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.codegen import default_of
from barnabas.protocol.schema import Message, StructType, WireType, wire_types

# Lengths on both sides of where a compact length takes its second byte, and text of one to four bytes per character.
_TEXTS = ("", "a", "orders", "ä", "日本語", "🎈", "n" * 126, "n" * 127, "n" * 128, "é" * 1000)
_BLOBS = (b"", b"\0", b"\xff\xfe", bytes(126), bytes(127), bytes(128), bytes(range(256)) * 4)
_CHARACTERS = ("\0", "\n", '"', "\\", "a", "Z", "\x7f", "\x80", "é", "\ud7ff", "\ue000", "\uffff", "\U0010ffff")
_FLOATS = (0.0, -0.0, 0.1, -1.5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"))


def _integers(low: int, high: int) -> Callable[[Random], int]:
    telling = tuple(
        n for n in (low, low + 1, -129, -2, -1, 0, 1, 2, 127, 128, 255, 256, high - 1, high) if low <= n <= high
    )

    def integer(random: Random) -> int:
        if random.random() < 0.5:
            return random.choice(telling)
        return max(low, random.getrandbits(random.randrange(1, high.bit_length() + 1)) * random.choice((1, 1, -1)))

    return integer


def _text(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(_TEXTS)
    return "".join(random.choices(_CHARACTERS, k=random.randrange(5)))


def _blob(random: Random) -> bytes:
    return random.choice(_BLOBS) if random.random() < 0.7 else random.randbytes(random.randrange(5))


_SCALARS: dict[str, Callable[[Random], Any]] = {
    "bool": lambda random: random.random() < 0.5,
    "int8": _integers(-(2**7), 2**7 - 1),
    "int16": _integers(-(2**15), 2**15 - 1),
    "int32": _integers(-(2**31), 2**31 - 1),
    "int64": _integers(-(2**63), 2**63 - 1),
    "uint16": _integers(0, 2**16 - 1),
    "uint32": _integers(0, 2**32 - 1),
    "float64": lambda random: random.choice((*_FLOATS, random.uniform(-1e9, 1e9))),
    "uuid": lambda random: bytes(16) if random.random() < 0.3 else random.randbytes(16),
    "string": _text,
    "bytes": _blob,
    "records": _blob,
}


def messages() -> Iterator[type[Message]]:
    """Each request and response."""
    for key in ApiKey:
        yield request_type(key)
        yield response_type(key)


def random_value(random: Random, struct: StructType, version: int) -> Any:
    """A struct as this version of its message can carry it: what it lacks has its default."""
    fields = {}
    for name, wire_type in wire_types(struct).items():
        spec = struct.fields[name]
        if version not in spec.versions or (spec.tag is not None and random.random() < 0.5):
            default = default_of(spec, wire_type)
            fields[name] = [] if default == () and isinstance(default, tuple) else default
        elif version in spec.nullable and random.random() < 0.3:
            fields[name] = None
        else:
            fields[name] = _field(random, wire_type, version)
    return struct(**fields)


def _field(random: Random, wire_type: Any, version: int) -> Any:
    if isinstance(wire_type, list):
        return [_field(random, wire_type[0], version) for _ in range(random.randrange(3))]
    if isinstance(wire_type, WireType):
        return _SCALARS[wire_type.name](random)
    return random_value(random, wire_type, version)

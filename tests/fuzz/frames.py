"""Frame number N of a seed: a request of some API and version, as it should be or damaged in some way.

What a frame is depends on the seed, its number, and what the broker has answered so far (`World`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from barnabas.protocol.api import ApiKey, request_header_version, request_type
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.schema import Message, Struct, Versions
from tests.fuzz.damage import damage_bytes, damage_fields
from tests.fuzz.stories import Step, next_step
from tests.fuzz.values import Values
from tests.fuzz.world import World

_CLIENT_IDS = ("fuzz", "fuzz", "fuzz", None, "", "__admin_client", "\x1b[2J", "x" * 32767)


class Frame(NamedTuple):
    number: int
    key: ApiKey
    version: int
    message: Message | None  # None if its bytes are damaged, so that it may be read as something else
    data: bytes
    correlation_id: int

    def __str__(self) -> str:
        return f"frame {self.number}: {self.key.api_name} v{self.version}, {len(self.data)} bytes"


class Frames:
    def __init__(self, seed: int, apis: dict[ApiKey, Versions], world: World) -> None:
        self._seed = seed
        self._apis = apis
        self._world = world
        self._keys = sorted(apis)

    def make(self, number: int) -> Frame:
        random = Random(f"{self._seed}/{number}")
        key, version, message = self._request(random)
        chance = random.random()
        if chance < 0.25:
            damage_fields(random, message, version)
        try:
            body = self._body(random, key, message, version, number)
        except (struct.error, TypeError, ValueError, OverflowError):  # the encoder cannot express this damage
            return self._without_damage(random, number)
        if chance < 0.7:
            return Frame(number, key, version, message, framed(body), number)
        return Frame(number, key, version, None, damage_bytes(random, framed(body)), number)

    def _request(self, random: Random) -> Step:
        """A step of a story, or a request of any API and version with any values."""
        if random.random() < 0.4:
            return next_step(random, self._world)
        key = random.choice(self._keys)
        versions = self._apis[key]
        version = random.choice((versions.highest, random.randint(versions.lowest, versions.highest)))
        return Step(key, version, Values(random, self._world).message(request_type(key), version))

    def _without_damage(self, random: Random, number: int) -> Frame:
        key, version, message = next_step(random, self._world)
        return Frame(number, key, version, message, framed(self._body(random, key, message, version, number)), number)

    def _body(self, random: Random, key: ApiKey, message: Message, version: int, number: int) -> bytes:
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=number,
            client_id=random.choice(_CLIENT_IDS),
        )
        return encode(header, request_header_version(key, version)) + encode(message, version)


def summary(message: Any, depth: int = 3) -> str:
    """A message in one line of limited length."""
    if isinstance(message, Struct):
        fields = ", ".join(f"{name}={summary(getattr(message, name), depth - 1)}" for name in type(message).fields)
        return f"{type(message).__name__}({fields})" if depth else "…"
    if isinstance(message, list):
        return f"[{len(message)}: {', '.join(summary(item, depth - 1) for item in message[:3])}]" if depth else "…"
    text = repr(message)
    return text if len(text) <= 60 else f"{text[:50]}… ({len(text)})"


def frame_line(data: Sequence[int] | bytes) -> str:
    return bytes(data[:64]).hex() + ("…" if len(data) > 64 else "")

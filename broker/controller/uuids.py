"""Kafka's ids of topics and clusters: 16 bytes, written as 22 characters of url-safe base64."""

import base64
import re
from collections.abc import Callable

_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")


def uuid_to_string(uuid: bytes | bytearray) -> str:
    return base64.urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def uuid_from_string(text: str) -> bytes:
    """The id that `text` stands for; raises ValueError."""
    if not _TEXT.fullmatch(text):
        raise ValueError(f"not an id: {text!r}")
    return base64.urlsafe_b64decode(text + "==")


def random_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random id (a UUID of version 4) that is neither reserved nor printed with a dash in front, like an option."""
    while True:
        uuid = bytearray(random_bytes(16))
        uuid[6] = uuid[6] & 0x0F | 0x40
        uuid[8] = uuid[8] & 0x3F | 0x80
        if not uuid_to_string(uuid).startswith("-"):
            return bytes(uuid)

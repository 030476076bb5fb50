"""Lines of a file or a pipe, many at a time."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import Final

from barnabas.errors import BarnabasError

# How much is read at once. Lines without keys that are read together go out in one batch.
_CHUNK: Final = 1 << 18
# More than any broker accepts by default, and little enough to hold in memory.
_LONGEST_LINE: Final = 1 << 27


class InputError(BarnabasError):
    """A line that cannot become a record."""


def read_lines(source: int, chunk: int = _CHUNK) -> Iterator[tuple[list[bytes], bool]]:
    """Lines as they arrive, and whether there was nothing more to read at that moment."""
    rest: list[bytes] = []
    rest_size = 0
    ended = False
    while not ended:
        data, paused, ended = _read_available(source, chunk)
        *lines, tail = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*rest, lines[0]))
            rest, rest_size = [], 0
        rest.append(tail)
        rest_size += len(tail)
        if ended and rest_size:
            lines.append(b"".join(rest))
        if lines:
            yield lines, paused
        if rest_size > _LONGEST_LINE:
            raise InputError(f"a line has more than {_LONGEST_LINE:,} bytes")


def _read_available(source: int, size: int) -> tuple[bytes, bool, bool]:
    """What is there, up to `size` bytes and at least one; then whether the input has paused, and whether it has ended.

    One read of a pipe returns little, so this reads on while there is more.
    """
    parts: list[bytes] = []
    while size > 0:
        if parts and not select.select([source], [], [], 0)[0]:
            return b"".join(parts), True, False
        try:
            data = os.read(source, size)
        except OSError as error:
            raise InputError(f"cannot read the input: {error.strerror}") from None
        if not data:
            return b"".join(parts), False, True
        parts.append(data)
        size -= len(data)
    return b"".join(parts), False, False

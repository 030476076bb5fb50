"""Make text from clients safe to show: it must not control the terminal that it is printed to."""

from __future__ import annotations

import re
from typing import Final

# Control characters, including those beyond ASCII, and characters that change text direction or break lines.
_UNPRINTABLE: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNPRINTABLE_IN_LINES: Final = re.compile(_UNPRINTABLE.pattern.replace("\0-\x1f", "\0-\x08\x0b-\x1f"))


def printable(text: str) -> str:
    r"""The same text with \x1b, for example, in place of an escape character."""
    return _UNPRINTABLE.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """Like `printable`, but keep tabs and line ends."""
    return _UNPRINTABLE_IN_LINES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """Like `printable`, for JSON with unescaped characters beyond ASCII: its meaning stays the same."""
    return _UNPRINTABLE_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

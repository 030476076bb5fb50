"""Backslash escapes in arguments, because a tab is hard to type in a shell."""

from __future__ import annotations

import re
from typing import Final

_MEANINGS: Final = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def unescape(text: str) -> str:
    r"""\t, \n, \r, \0 and \\ become what they stand for. Any other backslash stays."""
    return re.sub(r"\\([tnr0\\])", lambda found: _MEANINGS[found[1]], text)

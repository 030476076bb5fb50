"""Regular expressions that clients send.

Python's own engine can take exponential time on a malicious pattern and block the loop. RE2 takes time in proportion to
the text, within a memory limit, and its syntax is that of RE2/J, which Kafka uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_MAX_MEMORY: Final = 1 << 20


class InvalidPattern(Exception):
    """An invalid pattern, with the reason."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches the pattern as a whole. Raises InvalidPattern."""
    import re2  # imported with the first pattern: few brokers ever see one

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_capture = True  # nobody asks what a group matched, and with many of them that takes most of the time
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise InvalidPattern(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return lambda text: compiled.fullmatch(text) is not None

"""Pages of memory, ready for files that are about to be written.

A virtual machine may have to get a page from its host when it is first used, which takes longer than all else that a
broker does with it: what is measured then is the host, and how many pages others had freed before. So as many pages as
a load needs are used and freed again before it is measured.
"""

from __future__ import annotations

import tempfile
import time
from typing import Final

_WRITTEN_AT_ONCE: Final = 1024 * 1024  # what a follower fetches and writes of a partition


def make_ready(size: int) -> None:
    bytes_per_second_to_a_new_file(size)


def bytes_per_second_to_a_new_file(size: int) -> float:
    """What the system takes for the pages and the copies: nobody who writes a file is faster than that."""
    part = memoryview(bytes(_WRITTEN_AT_ONCE))
    with tempfile.TemporaryFile(buffering=0) as file:
        began = time.monotonic()
        for _ in range(size // _WRITTEN_AT_ONCE):
            file.write(part)
        return size / (time.monotonic() - began)

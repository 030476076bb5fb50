"""The names of a segment's files: its base offset in 20 digits, and a suffix."""

import os
from typing import Final

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

SEGMENT_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LOG_SUFFIX)

# What is added to the name of a file that waits to be deleted, that compaction is still writing, and that compaction
# has finished and is about to put in the place of others.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
# What is added while a file is written beside the one it will replace.
TEMPORARY: Final = ".tmp"

_DIGITS: Final = 20


def offset_file(folder: str, offset: int, suffix: str) -> str:
    return os.path.join(folder, f"{offset:0{_DIGITS}d}{suffix}")


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """The offset and the suffix (with all that follows the offset) of a file's name; None if it is none of these."""
    digits, dot, suffix = name.partition(".")
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isdecimal() or not dot:
        return None
    return int(digits), dot + suffix

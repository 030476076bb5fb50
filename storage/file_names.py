"""The names of a segment's files: its base offset in 20 digits, and a suffix."""

import os
from typing import Final

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

SEGMENT_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LOG_SUFFIX)

# Suffixes of files that wait to be deleted, that compaction is writing, and that compaction has finished and is about
# to swap in.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
# The suffix of a file that is being written and will replace another.
TEMPORARY: Final = ".tmp"

_DIGITS: Final = 20


def offset_file(folder: str, offset: int, suffix: str) -> str:
    return os.path.join(folder, f"{offset:0{_DIGITS}d}{suffix}")


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """The offset and the suffix (everything after the offset) of a file name; None if it has another form."""
    digits, dot, suffix = name.partition(".")
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isdecimal() or not dot:
        return None
    return int(digits), dot + suffix

"""A line on the terminal that shows how far a long job has come."""

from __future__ import annotations

import time
from typing import Final, Self, TextIO

_WIDTH: Final = 30
_INTERVAL: Final = 0.1
_ERASE_LINE: Final = "\r\x1b[K"


class Progress:
    """Draws on a terminal, and nowhere else. `total` is in bytes, None if it is not known."""

    def __init__(self, stream: TextIO | None, total: int | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._total = total
        self._begun = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Erase the line, so that whatever is printed next begins on a line of its own."""
        if self._stream is not None:
            self._stream.write(_ERASE_LINE)
            self._stream.flush()

    def show(self, records: int, size: int) -> None:
        now = time.monotonic()
        if self._stream is not None and now - self._drawn >= _INTERVAL:
            self._drawn = now
            self._stream.write(_ERASE_LINE + line(records, size, self._total, now - self._begun))
            self._stream.flush()

    def summary(self, records: int, size: int) -> None:
        if self._stream is not None:
            self._stream.write(_ERASE_LINE + line(records, size, None, time.monotonic() - self._begun) + "\n")


def line(records: int, size: int, total: int | None, seconds: float) -> str:
    rate = f"{records:,} records, {megabytes(size)}, {records / max(seconds, 1e-3):,.0f} records/s"
    if not total:
        return rate
    share = min(size / total, 1.0)
    filled = int(share * _WIDTH)
    left = seconds * (1 - share) / share if share else 0
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {rate}, {left:.0f} s left"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

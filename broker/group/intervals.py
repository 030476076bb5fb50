"""Intervals that begin at a time in a record, by the clock of whichever broker wrote it."""

from __future__ import annotations


def has_passed(since_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether it is so long ago. A time to come says nothing: the clock was put back since, or another one was fast."""
    return not since_ms <= now_ms < since_ms + interval_ms

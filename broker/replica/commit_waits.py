"""Callers that wait until something that was written is committed."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from barnabas.storage.errors import LogFailure

Done = Callable[[LogFailure | None], None]

_offset_of: Final = attrgetter("offset")
# From this many waits on, cancelled ones are removed before more are added.
_MANY: Final = 64


class CommitWait:
    """A wait until everything below an offset is committed."""

    __slots__ = ("done", "offset")

    def __init__(self, offset: int, done: Done) -> None:
        self.offset = offset
        self.done: Done | None = done

    def cancel(self) -> None:
        self.done = None

    def tell(self, failure: LogFailure | None) -> None:
        if self.done is not None:
            self.done(failure)


class CommitWaits:
    """Those of one partition."""

    __slots__ = ("_many", "waits")

    def __init__(self) -> None:
        self.waits: list[CommitWait] = []  # in the order of their offsets
        self._many = _MANY

    def add(self, offset: int, done: Done) -> CommitWait:
        wait = CommitWait(offset, done)
        waits = self.waits
        if len(waits) >= self._many:
            waits = self.waits = [each for each in waits if each.done is not None]
            self._many = max(_MANY, 2 * len(waits))
        if waits and waits[-1].offset > offset:  # a batch that was sent again, and is already in the log
            insort(waits, wait, key=_offset_of)
        else:
            waits.append(wait)
        return wait

    def tell(self, high_watermark: int) -> None:
        """Everything below the high watermark is committed."""
        waits = self.waits
        count = bisect_right(waits, high_watermark, key=_offset_of)
        if count:
            committed = waits[:count]
            del waits[:count]
            for wait in committed:
                wait.tell(None)

    def give_up(self, failure: LogFailure) -> None:
        waits, self.waits = self.waits, []
        for wait in waits:
            wait.tell(failure)

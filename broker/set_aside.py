"""What the broker has set aside: parts that failed unexpectedly, while everything else continues.

One log that cannot be compacted must not end the compaction of all logs, and one group that cannot be loaded must not
end all groups. Code that works through many things catches what one of them raises, adds it here, leaves it out
from then on and continues with the next. `state` shows the list.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

log = structlog.get_logger()


class Entry(NamedTuple):
    kind: str
    name: str
    reason: str


class SetAside:
    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}

    def add(self, kind: str, name: str, reason: str | BaseException) -> None:
        """Record that the thing of this kind and name is left out, and log it once per reason.

        An exception is logged with its traceback, unless it is the operating system's: a full disk is nobody's bug.
        """
        foreseen = isinstance(reason, str | OSError)
        text = str(reason) if foreseen else f"{type(reason).__name__}: {reason}"
        if self._reasons.get((kind, name)) == text:
            return
        self._reasons[kind, name] = text
        log.error("set aside", kind=kind, name=name, reason=text, exc_info=None if foreseen else reason)

    def remove(self, kind: str, name: str) -> None:
        """The thing works again or is gone. It need not have been set aside."""
        if self._reasons.pop((kind, name), None) is not None:
            log.info("no longer set aside", kind=kind, name=name)

    def __contains__(self, thing: tuple[str, str]) -> bool:
        return thing in self._reasons

    def entries(self) -> list[Entry]:
        return [Entry(kind, name, reason) for (kind, name), reason in self._reasons.items()]

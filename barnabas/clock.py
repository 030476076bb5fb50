"""The broker's clock, which a test can move."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.control import ControlClient

__tracebackhide__ = True  # pytest shows the line of the test instead


class Clock:
    def __init__(self, client: ControlClient) -> None:
        self._client = client

    @property
    def now_ms(self) -> int:
        """The broker's time, in milliseconds since 1970."""
        return int(self._client.call("GET", "/clock")["now_ms"])

    @property
    def ahead(self) -> float:
        """How many seconds the broker is ahead of the system clock."""
        return int(self._client.call("GET", "/clock")["ahead_ms"]) / 1000

    def advance(self, seconds: float | timedelta) -> None:
        """Move the broker's time forward. Everything that falls due in between happens now, in order.

        It has all happened when this returns: members whose session expired have left their groups, transactions that
        took too long are aborted, and expired records and offsets are gone. The broker sees clients as silent for that
        whole time, because their own clocks did not move.
        """
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        self._client.call("POST", "/clock/advance", {"seconds": seconds}, timeout=300.0)

"""The broker's clock, in the hands of a test."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client import ControlClient


class Clock:
    def __init__(self, client: ControlClient) -> None:
        self._client = client

    @property
    def now_ms(self) -> int:
        """The broker's time, in milliseconds since 1970."""
        return int(self._client.call("GET", "/clock")["now_ms"])

    @property
    def ahead(self) -> float:
        """How many seconds the broker is ahead of the system."""
        return int(self._client.call("GET", "/clock")["ahead_ms"]) / 1000

    def advance(self, seconds: float | timedelta) -> None:
        """Move the broker's time forward. What falls due on the way happens at once, in order, each at its own time.

        When this returns, it has happened: members whose session was over are out of their groups, transactions that
        took too long are aborted, records and offsets that were too old are gone. Clients count as silent for all of
        that time, since they live in the system's.
        """
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        self._client.call("POST", "/clock/advance", {"seconds": seconds}, timeout=300.0)

"""Strict mode: protocol violations by the clients of a broker under test.

assert broker.strict.reports == []
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.control import ControlClient

__tracebackhide__ = True  # pytest shows the line of the test instead


@dataclass(frozen=True)
class Report:
    rule: str
    reference: str  # the KIP or the part of the protocol guide that the rule comes from
    client_id: str | None
    peer: str
    message: str
    at_ms: int
    count: int


class Strict:
    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def start(self) -> None:
        """Watch clients from now on."""
        self._client.call("POST", "/strict", {"on": True})

    def stop(self) -> None:
        self._client.call("POST", "/strict", {"on": False})

    @property
    def reports(self) -> list[Report]:
        """The violations so far. Raises ControlFailed if strict mode was never on, because nothing was watching."""
        told: dict[str, Any] = self._client.call("GET", "/strict")
        return [Report(**report) for report in told["reports"]]

    def clear(self) -> None:
        self._client.call("DELETE", "/strict")

"""Faults for a broker under test: delayed, refused, cut off or wrongly answered requests.

broker.faults.add(api="Produce", topic="t", error="NOT_LEADER_OR_FOLLOWER", times=2)

with broker.faults.add(api="Fetch", delay_ms=500) as fault:
    ...
assert fault.hits == 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.errors import ControlFailed

if TYPE_CHECKING:
    from barnabas.control import ControlClient

__tracebackhide__ = True  # pytest shows the line of the test instead


class Fault:
    """A fault in a broker. As a context manager, it is removed at the end of the block."""

    def __init__(self, client: ControlClient, told: Mapping[str, Any]) -> None:
        self._client = client
        self._told = dict(told)
        self._removed = False
        self.id: int = self._told["id"]

    def _now(self) -> dict[str, Any]:
        if not self._removed:
            self._told = dict(self._client.call("GET", f"/faults/{self.id}"))
        return self._told

    @property
    def seen(self) -> int:
        """How many requests matched the fault."""
        return int(self._now()["seen"])

    @property
    def hits(self) -> int:
        """How many of the matching requests it affected."""
        return int(self._now()["hits"])

    @property
    def over(self) -> bool:
        """Whether the fault is used up or has expired."""
        return bool(self._now()["over"])

    def remove(self) -> None:
        """Remove the fault from the broker. Its counters stay readable."""
        if not self._removed:
            self._removed = True
            try:
                self._told = dict(self._client.call("DELETE", f"/faults/{self.id}"))
            except ControlFailed as failure:
                if failure.status != HTTPStatus.NOT_FOUND:  # a reset or a restart has removed it
                    raise

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._told.items())
        return f"Fault({fields})"


class Faults:
    """The faults of one broker. Their fields are described in docs/testing.md."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def add(
        self,
        *,
        api: str | list[str] | None = None,
        versions: str | int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
        principal: str | None = None,
        nth: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
        times: int | None = None,
        for_ms: int | None = None,
        delay_ms: int | None = None,
        delay_answer_ms: int | None = None,
        error: str | int | None = None,
        close: str | None = None,
        throttle_ms: int | None = None,
        corrupt: bool | None = None,
        refuse_connections: bool | None = None,
        stop_ms: int | None = None,
    ) -> Fault:
        """Add a fault, which is active when this returns. A wrong field raises ControlFailed, which names the field."""
        fields = {name: value for name, value in locals().items() if name != "self" and value is not None}
        return Fault(self._client, self._client.call("POST", "/faults", fields))

    def add_all(self, faults: list[Mapping[str, Any]]) -> list[Fault]:
        """Add several faults, or none if one of them is wrong."""
        return [Fault(self._client, told) for told in self._client.call("POST", "/faults", faults)]

    def stop(self, ms: int) -> None:
        """Make the broker stop responding to all clients for a while, starting now."""
        self._client.call("POST", "/faults/stop", {"ms": ms})

    def resume(self) -> None:
        """Let a stopped broker continue."""
        self._client.call("POST", "/faults/resume")

    def clear(self) -> None:
        """Remove all faults."""
        self._client.call("DELETE", "/faults")

    def __iter__(self) -> Iterator[Fault]:
        return iter([Fault(self._client, told) for told in self._client.call("GET", "/faults")])

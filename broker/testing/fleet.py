"""The brokers that a test controls: those of one process, as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.clock import Clock

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replica.partition import Partition


class Fleet(Protocol):
    """What faults, journal and strict mode need from them; broker.local_cluster is one."""

    clock: Clock
    on_started: list[Callable[[Broker], None]]

    @property
    def brokers(self) -> Iterable[Broker]:
        """Those that are running."""


def leader_of(brokers: Iterable[Broker], topic: str, index: int) -> Partition | None:
    """A partition at the broker that leads it; without one, at a broker that has it."""
    found = [each for broker in brokers if (each := broker.replicas.find(topic, index)) is not None]
    return next((each for each in found if each.leadership is not None), found[0] if found else None)

"""What a partition needs from its broker, and the interfaces of those who use a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.clock import Clock
from barnabas.broker.replica.moments import Moments
from barnabas.broker.set_aside import SetAside
from barnabas.storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from barnabas.broker.replica.partition import Partition


class Worker(Protocol):
    def run(self, work: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        """Do `work` where it may block, and report its end on the loop."""


class LongWork(Protocol):
    def add(self, work: Any, done: Callable[[Exception | None], None]) -> None:
        """Finish `work` off the loop, a piece at a time, and report its end on the loop."""


class Host(Protocol):
    """What a partition needs from its broker."""

    clock: Clock
    broker_id: int

    @property
    def max_lag_ms(self) -> int:
        """How long a follower may be behind before it counts as out of sync (`replica.lag.time.max.ms`)."""

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as this one knows."""

    def disk_failed(self, reason: str) -> None:
        """An append to a replicated partition failed because of the disk."""

    def is_on_disk(self, partition: Partition) -> None:
        """A follower's log is on disk as far as its settings require: it may fetch more."""

    @property
    def worker(self) -> Worker: ...

    @property
    def set_aside(self) -> SetAside: ...

    @property
    def moments(self) -> Moments: ...

    def append_soon(self, partition: Partition) -> None:
        """Schedule a call of `append_queued` at the end of this turn of the loop."""

    def in_turns(self, name: str, job: Iterator[None]) -> None:
        """Do the steps of a job, a few milliseconds of them in each turn of the loop."""

    @property
    def long_work(self) -> LongWork: ...


class Waiter(Protocol):
    """Somebody who waits for records."""

    def on_news(self, size: int) -> None:
        """About this many bytes more can be read now; with 0, something else happened that is worth another check."""


class Appender(Protocol):
    """Somebody who appends records."""

    def appended(self, partition: Partition, place: Any, result: AppendResult | Refusal) -> None:
        """The records that were passed with `place` are written, or refused. `when_committed` reports the rest."""

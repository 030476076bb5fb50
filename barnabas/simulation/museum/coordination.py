"""Mistakes of the coordinators of groups and transactions."""

from __future__ import annotations

from typing import Any

from barnabas.broker.coordinator.runtime import CoordinatorRuntime
from barnabas.broker.transaction import ending
from barnabas.broker.transaction.admission import Admission
from barnabas.protocol.errors import ErrorCode
from barnabas.simulation.museum.exhibit import Exhibit, Replacement
from barnabas.storage.errors import InvalidProducerEpoch
from barnabas.storage.producer_state import AppendOrigin, ProducerUpdate


def _unloads_late() -> list[Replacement]:
    original = CoordinatorRuntime.on_not_leader

    def on_not_leader(self: Any, partition: Any) -> None:
        """A while later, as if a queue of tasks had to be worked off before."""
        self._replicas.clock.call_later(10.0, lambda: original(self, partition))

    def on_leader(self: Any, partition: Any) -> None:
        """It is still loaded: nothing to do."""
        if self._led.get(partition.index) is None:
            first(self, partition)

    first = CoordinatorRuntime.on_leader
    return [
        Replacement(CoordinatorRuntime, "on_not_leader", on_not_leader),
        Replacement(CoordinatorRuntime, "on_leader", on_leader),
    ]


KAFKA_10614 = Exhibit(
    "kafka-10614",
    "a coordinator unloads after it has loaded again",
    "KAFKA-10614",
    """
A broker loses a partition of `__consumer_offsets` and gets it back soon after. If the task that unloads it comes late,
it unloads what was loaded for the new epoch, and until the next election nobody answers for those groups; or what was
loaded before stays, and clients are told offsets from the time before.
""",
    _unloads_late,
    seed=28,
    weather="handovers",
)


def _answers_early() -> list[Replacement]:
    def _when_committed(self: Any, led: Any, tell: Any) -> None:
        tell(ErrorCode.NONE)

    return [Replacement(CoordinatorRuntime, "_when_committed", _when_committed)]


KAFKA_20634 = Exhibit(
    "kafka-20634",
    "a coordinator answers for writes that a new leader cuts",
    "KAFKA-18137, KAFKA-20634",
    """
A coordinator keeps its state in memory and in a partition. If it answers as soon as a record is written, and not when
it is committed, the next leader of that partition may never have had it: an offset that a group has committed goes
back, or a transaction that was said to be committed is aborted.
""",
    _answers_early,
    seed=25,
    weather="handovers",
)


def _admits_everything() -> list[Replacement]:
    original = Admission.ask

    def ask(self: Admission, transaction: Any, partitions: Any, answer: Any) -> None:
        if transaction.adds_partitions:
            original(self, transaction, partitions, answer)
        else:
            answer(dict.fromkeys(partitions, ErrorCode.NONE))

    return [Replacement(Admission, "ask", ask)]


KIP_890 = Exhibit(
    "kip-890",
    "a batch that comes after the end of its transaction begins one that nobody ends",
    "KIP-890, KAFKA-14402",
    """
A producer gives up waiting and aborts its transaction, while a batch of it is still on its way. The batch arrives after
the marker and begins a transaction of which no coordinator knows: nobody ends it, and readers of committed records wait
forever. So whoever leads the partition asks the coordinator before it takes the first batch of a transaction.
""",
    _admits_everything,
    seed=6,
    weather="latecomers",
)


def _refuses_repeated_markers() -> list[Replacement]:
    original = ProducerUpdate.add_marker

    def add_marker(
        self: Any, header: Any, marker: Any, offset: int, origin: AppendOrigin, transaction_version: int = 0
    ) -> None:
        producer = self.producers.get(header.producer_id) or self._known.get(header.producer_id)
        if (
            origin is not AppendOrigin.REPLICATION
            and transaction_version >= 2
            and producer is not None
            and header.producer_epoch <= producer.producer_epoch
        ):
            raise InvalidProducerEpoch("the marker's epoch is not newer than the producer's")
        original(self, header, marker, offset, origin, transaction_version)

    not_needed = tuple(each for each in ending._MARKER_NOT_NEEDED if each != ErrorCode.INVALID_PRODUCER_EPOCH)
    return [
        Replacement(ProducerUpdate, "add_marker", add_marker),
        Replacement(ending, "_MARKER_NOT_NEEDED", not_needed),
    ]


KAFKA_19999 = Exhibit(
    "kafka-19999",
    "a marker that is sent again is refused forever",
    "KAFKA-19999",
    """
Since KIP-890 each transaction has an epoch of its own, and a marker whose epoch is not newer than what a partition has
seen is refused, so that it cannot end the next transaction. But a coordinator whose marker was written and whose answer
was lost sends the same marker again. If that is refused too, the transaction never ends for the coordinator, and its
producer waits forever. A marker that repeats one that was written must be taken.
""",
    _refuses_repeated_markers,
    seed=4,
    weather="echoes",
)

EXHIBITS = [KAFKA_10614, KAFKA_20634, KIP_890, KAFKA_19999]

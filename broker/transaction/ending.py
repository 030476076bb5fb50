"""A transaction between its decided end (Prepare) and its completion (Complete).

Each of its partitions gets a marker, on whichever broker leads it, retried until it is accepted: the leader may be
unknown, may have moved, or may be out of reach. A deleted partition needs none. Then the completion is written. If this
broker ceases to coordinate in between, it stops: the next coordinator finds the decision in its log and does the same,
in a newer epoch, so that markers of this one are refused from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import structlog

from barnabas.broker.coordinator.result import Operation
from barnabas.broker.transaction.markers import Done as Written
from barnabas.broker.transaction.markers import Marker
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.operations import Complete
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

log = structlog.get_logger()

# The delay before the retry of a marker that a leader could not write, or of a completion that could not be written.
_RETRY_MS: Final = 1000
# The delay before checking again who leads a partition.
_LOOK_AGAIN_MS: Final = 100
# The leader is somewhere else, or not known yet.
_MOVED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
# The partition has seen a newer epoch of the producer or of the coordinator: nothing of this one is open there.
_MARKER_NOT_NEEDED: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)

Finished = Callable[[bool], None]


def ignore(complete: bool) -> None:
    pass


class Markers(Protocol):
    def are_local(self, partitions: Collection[TopicPartition]) -> bool: ...

    def send(self, marker: Marker, done: Written, is_wanted: Callable[[], bool]) -> None: ...


class Coordinator(Protocol):
    """What an ending needs from the coordinator."""

    def now_ms(self) -> int: ...

    def ask(self, index: int, operation: Operation) -> None: ...

    def coordinator_epoch(self, index: int) -> int: ...

    def coordinates(self, index: int, shard: TransactionShard) -> bool: ...


class Ending:
    __slots__ = ("_again", "_coordinator", "_index", "_is_told", "_left", "_markers", "_prepared", "_shard", "_then")

    def __init__(
        self,
        coordinator: Coordinator,
        markers: Markers,
        index: int,
        shard: TransactionShard,
        prepared: TransactionMetadata,
        then: Finished,
    ) -> None:
        """`then` is called once: the end is complete, or it takes time. It is carried out in any case."""
        self._coordinator = coordinator
        self._markers = markers
        self._index = index
        self._shard = shard
        self._prepared = prepared
        self._then = then
        self._left = set(prepared.partitions)  # the partitions without a marker so far
        self._again: set[TopicPartition] = set()  # those of them that have to be retried
        self._is_told = False

    def begin(self) -> None:
        if not self._left:
            self._complete()
            return
        if not self._markers.are_local(self._left):
            self._tell(False)  # others may take longer
        self._write(self._left)

    def _is_wanted(self) -> bool:
        return self._coordinator.coordinates(self._index, self._shard)

    def _write(self, partitions: Collection[TopicPartition]) -> None:
        prepared = self._prepared
        marker = Marker(
            prepared.producer_id,
            prepared.producer_epoch,
            self._coordinator.coordinator_epoch(self._index),
            prepared.state == TransactionState.PREPARE_COMMIT,
            tuple(sorted(partitions)),  # the same order everywhere
            prepared.client_version,
        )
        self._markers.send(marker, self._written, self._is_wanted)

    def _written(self, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        if not self._is_wanted():
            self._tell(False)
            return
        failed = {partition: error for partition, error in errors.items() if error not in _MARKER_NOT_NEEDED}
        self._left -= errors.keys() - failed.keys()
        if failed:
            self._try_again(failed)
        elif not self._left:
            self._complete()

    def _try_again(self, failed: Mapping[TopicPartition, ErrorCode]) -> None:
        moved = all(error in _MOVED for error in failed.values())
        if not (moved and self._is_told):  # the leader is looked up ten times a second, but reported once
            self._is_told = True
            names = sorted({error.name for error in failed.values()})
            what = f"{len(failed)} markers could not be written yet: {', '.join(names)}"
            self._shard.note(self._coordinator.now_ms(), self._prepared.transactional_id, what)
            (log.info if moved else log.error)(
                "markers could not be written",
                transactional_id=self._prepared.transactional_id,
                partitions=sorted(failed),
                errors=names,
            )
        started, self._again = bool(self._again), self._again | failed.keys()
        if not started:
            self._later(_LOOK_AGAIN_MS if moved else _RETRY_MS, self._write_again)
        self._tell(False)

    def _write_again(self) -> None:
        again, self._again = self._again, set()
        self._write(again)

    def _complete(self) -> None:
        operation = Complete(self._coordinator.now_ms, self._prepared, self._completed)
        self._coordinator.ask(self._index, operation)

    def _completed(self, error: ErrorCode) -> None:
        if error and self._is_wanted():
            self._later(_RETRY_MS, self._complete)
        self._tell(not error)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Not if the shard is unloaded meanwhile."""
        self._shard.timers.schedule(("markers", self._prepared.transactional_id), delay_ms, action)

    def _tell(self, complete: bool) -> None:
        then, self._then = self._then, ignore
        then(complete)

"""The ends of transactions: a marker in every partition that took part.

A marker is a control batch with one record, under the producer's id and epoch. With it the producer's transaction in
that partition is over: the last stable offset moves on, and an aborted one is noted in the segment's index. Markers
that meet in a partition in one turn of the loop are one write. In a partition of __consumer_offsets a marker also makes
the offsets that were committed in the transaction hold, or drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from broker.errors import error_code_of
from broker.internal_topics import CONSUMER_OFFSETS
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from protocol.errors import ErrorCode
from protocol.records.control import ControlType, build_end_transaction_marker
from storage.write import AppendResult, Refusal

TopicPartition = tuple[str, int]
Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    partitions: Sequence[TopicPartition]
    # From 2 on, a transaction ends under an epoch of its own: one that a partition knows already is a late one.
    transaction_version: int = 0


class Offsets(Protocol):
    def end_transaction(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker has been written to a partition of __consumer_offsets."""


class TransactionMarkers:
    def __init__(self, replicas: Replicas, offsets: Offsets) -> None:
        self._replicas = replicas
        self._offsets = offsets

    def write(self, marker: Marker, done: Done) -> None:
        """Append the marker to its partitions, and tell what became of it in each when it is committed in all.

        It is written at the end of this turn of the loop. A partition that is no more, or that is deleted meanwhile,
        needs no marker.
        """
        names = dict.fromkeys(marker.partitions)
        found = [partition for name in names if (partition := self._replicas.find(*name)) is not None]
        _Write(self._offsets, marker, done).begin(found, self._replicas.clock.now_ms())


class _Write:
    """One marker, until it is written to all of its partitions."""

    __slots__ = ("_done", "_errors", "_left", "_marker", "_offsets")

    def __init__(self, offsets: Offsets, marker: Marker, done: Done) -> None:
        self._offsets = offsets
        self._marker = marker
        self._done = done
        self._errors: dict[TopicPartition, ErrorCode] = dict.fromkeys(marker.partitions, ErrorCode.NONE)
        self._left = 0

    def begin(self, partitions: Sequence[Partition], now_ms: int) -> None:
        if not partitions:
            self._done(self._errors)
            return
        marker = self._marker
        self._left = len(partitions)
        batch = build_end_transaction_marker(
            ControlType.COMMIT if marker.commit else ControlType.ABORT,
            timestamp=now_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
        for partition in partitions:
            # Each gets offsets of its own.
            partition.append_marker_soon(memoryview(bytearray(batch)), marker.transaction_version, self, None)

    def appended(self, partition: Partition, place: None, result: AppendResult | Refusal) -> None:
        if isinstance(result, AppendResult):
            if partition.topic == CONSUMER_OFFSETS:
                self._offsets.end_transaction(partition.index, self._marker.producer_id, self._marker.commit)
        elif not partition.deleted:
            self._errors[partition.topic, partition.index] = error_code_of(result)
        self._left -= 1
        if not self._left:
            self._done(self._errors)

"""The ends of transactions: a marker in every partition that took part.

A marker is a control batch with one record, under the producer's id and epoch. It ends the producer's transaction in
that partition: the last stable offset moves on, and an aborted transaction is recorded in the segment's index. Markers
for the same partition in one turn of the loop are one write. In a partition of __consumer_offsets a marker also makes
the offsets that were committed in the transaction valid, or drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.broker.coordinator.runtime import leads
from barnabas.broker.errors import error_code_of
from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.replicas import Replicas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.write import AppendResult, Refusal

Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    partitions: Sequence[TopicPartition]
    # From 2 on, each transaction has its own epoch: a marker whose epoch a partition already knows is late.
    transaction_version: int = 0


class Offsets(Protocol):
    def end_transaction(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker has been written to a partition of __consumer_offsets."""


class TransactionMarkers:
    def __init__(self, replicas: Replicas, offsets: Offsets) -> None:
        self._replicas = replicas
        self._offsets = offsets

    def write(self, marker: Marker, done: Done) -> None:
        """Append the marker to its partitions, and report the result for each when it is committed in all.

        It is written at the end of this turn of the loop. A partition that this broker does not lead, or no longer has,
        gets NOT_LEADER_OR_FOLLOWER: only the metadata says whether it still exists somewhere.
        """
        errors = dict.fromkeys(marker.partitions, ErrorCode.NONE)
        found = []
        for name in errors:
            partition = self._replicas.find(*name)
            if partition is None or not leads(partition):
                errors[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif not partition.has_enough_replicas():
                errors[name] = ErrorCode.NOT_ENOUGH_REPLICAS
            else:
                found.append(partition)
        _Write(self._offsets, marker, errors, done).begin(found, self._replicas.clock.now_ms())


class _Write:
    """One marker, until it is written to all of its partitions."""

    __slots__ = ("_done", "_errors", "_left", "_marker", "_offsets")

    def __init__(self, offsets: Offsets, marker: Marker, errors: dict[TopicPartition, ErrorCode], done: Done) -> None:
        self._offsets = offsets
        self._marker = marker
        self._done = done
        self._errors = errors
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
        """Offsets follow the order of the log; answers about them wait until it is committed."""
        if isinstance(result, AppendResult):
            if partition.topic == CONSUMER_OFFSETS:
                self._offsets.end_transaction(partition.index, self._marker.producer_id, self._marker.commit)
            partition.when_committed(result.last_offset + 1, lambda failure: self._committed(partition, failure))
        else:
            self._committed(partition, result)

    def _committed(self, partition: Partition, failure: Exception | None) -> None:
        if failure is not None:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if partition.deleted else error_code_of(failure)
            self._errors[partition.log.topic_partition] = error
        self._left -= 1
        if not self._left:
            self._done(self._errors)

"""What the invariants look at of a broker, in one place: the broker's own classes may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.broker.broker import Broker
from barnabas.broker.handlers.fetching import Fetch
from barnabas.broker.replica.leadership import IsrChange
from barnabas.broker.replica.partition import Partition
from barnabas.protocol.records.batch import BatchHeader
from barnabas.storage.log import Log


class ReplicaView(NamedTuple):
    """A replica of a partition on one broker, at one moment."""

    topic: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    leads: bool
    start_offset: int
    high_watermark: int
    end_offset: int
    truncations: int
    isr: tuple[int, ...] | None  # of a leader
    asked: IsrChange | None  # what the leader has asked the controller for


class BatchView(NamedTuple):
    """A batch of a log: enough to tell whether two logs have the same."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    checksum: int
    size: int


# Cheaper than the constructors of named tuples.
_new: Final = tuple.__new__

Seen = dict[Partition, tuple[object, ...]]
"""What was seen of replicas before."""


def replicas_of(broker: Broker) -> list[tuple[ReplicaView, Log]]:
    """All replicas of a broker. None while it is starting."""
    return changed_replicas(broker, {})


def changed_replicas(broker: Broker, seen: Seen) -> list[tuple[ReplicaView, Log]]:
    """Those that have changed since they were last `seen`.

    This comes after every instant, and most of the time nothing has changed: it is the one place that looks at each
    replica each time, and so it is written without calls.
    """
    changed: list[tuple[ReplicaView, Log]] = []
    replicas = getattr(broker, "replicas", None)
    if replicas is None:
        return changed
    for topic in replicas._hosted.values():
        for partition in topic.partitions:
            if partition is None:
                continue
            log, leadership = partition.log, partition.leadership
            state = (
                partition.leader_epoch,
                leadership is not None,
                log.log_start_offset,
                log.high_watermark,
                log.end_offset,
                log.truncations,
                None if leadership is None else leadership.isr,
                None if leadership is None else leadership.asked,
            )
            if seen.get(partition) != state:
                seen[partition] = state
                view = _new(ReplicaView, (partition.topic, partition.topic_id, partition.index, *state))
                changed.append((view, log))
    return changed


def waits_for_nobody(broker: Broker) -> Iterator[str]:
    """Partitions of which something is not committed although this broker, their leader, is alone in sync."""
    replicas = getattr(broker, "replicas", None)
    if replicas is None:
        return
    for partition in replicas:
        leadership, log = partition.leadership, partition.log
        if (
            leadership is not None
            and log.high_watermark < log.end_offset
            and len(leadership.maximal_isr) == 1
            and not partition.waits_for_disk
        ):
            yield str(log.topic_partition)


def waits_in_vain(broker: Broker) -> Iterator[tuple[str, object]]:
    """Fetches that wait at a partition although it has something for them. Those of the simulation take any byte."""
    replicas = getattr(broker, "replicas", None)
    if replicas is None:
        return
    for partition in replicas:
        name, log = str(partition.log.topic_partition), partition.log
        for waiter in (*partition.waiters, *partition.append_waiters):
            if isinstance(waiter, Fetch):
                for key, wanted in waiter._context.partitions.items():
                    if waiter._find(key) is partition and wanted.fetch_offset < _readable(waiter, log):
                        yield name, waiter


def _readable(fetch: Fetch, log: Log) -> int:
    """How far somebody may read: followers everything, readers what is committed."""
    if fetch._is_replica:
        return log.end_offset
    return log.last_stable_offset if fetch._message.isolation_level else log.high_watermark


def batches_of(log: Log, start: int, end: int) -> list[BatchView]:
    """The batches of a log that hold something of [start, end)."""
    found: list[BatchView] = []
    if start >= end:
        return found
    for segment in log.segments.from_offset(start):
        if segment.base_offset >= end:
            break
        first = segment.locate(max(start, segment.base_offset))
        if first is None:
            continue
        for _, header in segment.headers(first.position):
            if header.base_offset >= end:
                return found
            found.append(_view(header))
    return found


def _view(header: BatchHeader) -> BatchView:
    last_offset = header.base_offset + header.last_offset_delta
    return _new(BatchView, (header.base_offset, last_offset, header.partition_leader_epoch, header.crc, header.size))

"""Mistakes in what readers are given: from beyond the high watermark, too late, or from the wrong replica."""

from __future__ import annotations

from typing import Any

from barnabas.broker.handlers.fetching import Fetch
from barnabas.broker.replica.partition import NO_LEADER, Partition
from barnabas.broker.replica.replica_selector import ReplicaView
from barnabas.simulation.museum.exhibit import Exhibit, Replacement

_READ_UNCOMMITTED = 0


def _reads_the_high_watermark_twice() -> list[Replacement]:
    wait, bound = Fetch._wait_at_partitions, Fetch._upper_bound
    to_the_end: dict[Fetch, list[Partition]] = {}

    def _wait_at_partitions(self: Fetch) -> None:
        wait(self)
        to_the_end[self] = [each for each in self._waits_at if each.log.high_watermark == each.log.end_offset]

    def _upper_bound(self: Fetch, partition: Partition) -> int:
        plain = not self._is_replica and self._message.isolation_level == _READ_UNCOMMITTED
        if plain and partition in to_the_end.get(self, ()):
            return partition.log.end_offset
        return bound(self, partition)

    return [
        Replacement(Fetch, "_wait_at_partitions", _wait_at_partitions),
        Replacement(Fetch, "_upper_bound", _upper_bound),
    ]


KAFKA_9835 = Exhibit(
    "kafka-9835",
    "one fetch looks at the high watermark twice",
    "KAFKA-9835",
    """
A fetch finds that the high watermark is at the end of the log, so that it may send everything up to the end of the
file. By the time that it reads the file, somebody has appended: the reader gets a record that is not committed, and
that a new leader may never have. A fetch must look at the high watermark once.
""",
    _reads_the_high_watermark_twice,
    seed=1,
)


def _followers_tell_nobody() -> list[Replacement]:
    original = Partition.append_fetched

    def append_fetched(self: Partition, *arguments: Any) -> None:
        waiters, self.waiters = self.waiters, {}
        try:
            original(self, *arguments)
        finally:
            self.waiters = waiters

    return [Replacement(Partition, "append_fetched", append_fetched)]


KAFKA_13778 = Exhibit(
    "kafka-13778",
    "a fetch from the closest replica waits although there is something",
    "KAFKA-13778",
    """
A consumer that reads from a follower waits there for news. A follower's high watermark moves when its leader says so,
and not by what the follower does itself: if nobody looks at waiting fetches then, they wait until their time is over.
""",
    _followers_tell_nobody,
    seed=1,
    weather="closest",
)


def _sends_to_anybody() -> list[Replacement]:
    def _closer_replica(self: Fetch, partition: Partition, offset: int) -> int:
        leadership, select = partition.leadership, self._broker.replicas.selector
        if leadership is None or select is None:
            return NO_LEADER
        brokers = self._broker.cluster.brokers
        followers = [
            ReplicaView(follower.end_offset, follower.caught_up_ms, broker_id, brokers[broker_id].rack)
            for broker_id, follower in leadership.followers.items()
            if broker_id in brokers and follower.log_start_offset <= offset <= follower.end_offset
        ]
        own = self._broker.config
        leader = ReplicaView(partition.log.end_offset, 0, own.node_id, own.broker_rack)
        selected = select(self._message.rack_id, leader, followers).broker_id
        return NO_LEADER if selected == own.node_id else selected

    return [Replacement(Fetch, "_closer_replica", _closer_replica)]


KAFKA_14372 = Exhibit(
    "kafka-14372",
    "a reader is sent to a replica that is not in sync",
    "KAFKA-14372",
    """
A leader tells a consumer which replica is closest. If it names one that is not in sync, the consumer reads from a
replica that gets nothing new, finds nothing wrong with that, and waits.
""",
    _sends_to_anybody,
    seed=1,
    weather="closest",
)

EXHIBITS = [KAFKA_9835, KAFKA_13778, KAFKA_14372]

"""Offsets that were committed in open transactions.

They become valid when the transaction is committed, unless a later record in the log has committed another offset for
the same partition, and never if it is aborted. Until then a reader that wants stable offsets has to wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.topic_partition import TopicPartition

_NONE: Final[Collection[TopicPartition]] = ()


class _Pending(NamedTuple):
    # Its position in the log, counted since the shard was loaded.
    position: int
    committed: CommittedOffset


class PendingOffsets:
    """The pending offsets of one coordinator partition. Only replayed records change them."""

    def __init__(self) -> None:
        self._next_position = 0
        # What each producer's transaction has committed; None if a later offset is already valid.
        self._by_producer: dict[int, dict[tuple[str, TopicPartition], _Pending | None]] = {}
        self._producers: dict[str, dict[TopicPartition, set[int]]] = {}  # by group

    def of_group(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions of a group whose offset a transaction may still change."""
        return self._producers.get(group_id, _NONE)

    def of_topics(self, topics: Mapping[str, bytes]) -> Iterator[tuple[str, TopicPartition]]:
        """What is pending for deleted topics; by name, with their ids."""
        for group_id, partitions in self._producers.items():
            for partition, producers in partitions.items():
                topic_id = topics.get(partition[0])
                if topic_id is None:
                    continue
                pending = [self._by_producer[each][group_id, partition] for each in producers]
                if not any(each is not None and each.committed.is_of_another(topic_id) for each in pending):
                    yield group_id, partition

    def of_producer(self, producer_id: int) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        for (group_id, partition), pending in self._by_producer.get(producer_id, {}).items():
            if pending is not None:
                yield group_id, partition, pending.committed

    def add(self, producer_id: int, group_id: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        pending = self._by_producer.setdefault(producer_id, {})
        pending[group_id, partition] = _Pending(self._next_position, committed)
        self._next_position += 1
        self._producers.setdefault(group_id, {}).setdefault(partition, set()).add(producer_id)

    def supersede(self, group_id: str, partition: TopicPartition, position: int | None = None) -> None:
        """An offset was committed after `position` in the log; by default, after everything pending."""
        for producer_id in self._producers.get(group_id, {}).get(partition, ()):
            mine = self._by_producer[producer_id]
            pending = mine[group_id, partition]
            if pending is not None and (position is None or pending.position < position):
                mine[group_id, partition] = None

    def forget(self, group_id: str, partition: TopicPartition) -> None:
        """The offset was deleted: pending ones for it are dropped."""
        for producer_id in self._producers.get(group_id, {}).get(partition, set()).copy():
            del self._by_producer[producer_id][group_id, partition]
            if not self._by_producer[producer_id]:
                del self._by_producer[producer_id]
            self._remove(producer_id, group_id, partition)

    def end(self, producer_id: int, committed: bool) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        """A producer's transaction is over. Returns the offsets that become valid."""
        ended = self._by_producer.pop(producer_id, {})
        for group_id, partition in ended:
            self._remove(producer_id, group_id, partition)
        for (group_id, partition), pending in ended.items():
            if committed and pending is not None:
                self.supersede(group_id, partition, pending.position)
                yield group_id, partition, pending.committed

    def _remove(self, producer_id: int, group_id: str, partition: TopicPartition) -> None:
        partitions = self._producers[group_id]
        partitions[partition].discard(producer_id)
        if not partitions[partition]:
            del partitions[partition]
        if not partitions:
            del self._producers[group_id]

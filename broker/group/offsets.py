"""The offsets that groups have committed: how far each has read every partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.kind import AnyGroup
from barnabas.broker.group.pending_offsets import PendingOffsets
from barnabas.broker.group.records import CommittedOffset, offset_record
from barnabas.protocol.topic_partition import TopicPartition

_NONE: Final[Mapping[TopicPartition, CommittedOffset]] = {}


class Offsets:
    """The offsets of one coordinator partition. Only `replay` changes them."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.pending = PendingOffsets()

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._by_group.get(group_id, _NONE)

    def replay(
        self,
        group_id: str,
        partition: TopicPartition,
        committed: CommittedOffset | None,
        producer_id: int | None = None,
    ) -> None:
        """An offset or its deletion; with a producer, one that waits for the end of its transaction."""
        if committed is None:
            self.pending.forget(group_id, partition)
            offsets = self._by_group.get(group_id)
            if offsets is not None and offsets.pop(partition, None) is not None and not offsets:
                del self._by_group[group_id]
        elif producer_id is not None:
            self.pending.add(producer_id, group_id, partition, committed)
        else:
            self.pending.supersede(group_id, partition)
            self._by_group.setdefault(group_id, {})[partition] = committed

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        for group_id, partition, offset in self.pending.end(producer_id, committed):
            self._by_group.setdefault(group_id, {})[partition] = offset

    def tombstones(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[CoordinatorRecord]:
        """Tombstones for those of these offsets that exist."""
        known, pending = self.of_group(group_id), self.pending.of_group(group_id)
        return [
            offset_record(group_id, *partition, None)
            for partition in partitions
            if partition in known or partition in pending
        ]

    def of_topics(self, topics: Mapping[str, bytes]) -> list[CoordinatorRecord]:
        """Tombstones for all offsets of deleted topics; by name, with their ids. A topic that was created anew under
        the name of a deleted one keeps its offsets: a former coordinator may have heard of it earlier."""
        known = [
            (group_id, partition)
            for group_id, offsets in self._by_group.items()
            for partition, committed in offsets.items()
            if partition[0] in topics and not committed.is_of_another(topics[partition[0]])
        ]
        gone = dict.fromkeys([*known, *self.pending.of_topics(topics)])
        return [offset_record(group_id, *partition, None) for group_id, partition in gone]

    def expired(self, group: AnyGroup, now_ms: int, kept_ms: int) -> list[TopicPartition]:
        """The expired offsets. An offset that an open transaction may change does not expire."""
        pending = self.pending.of_group(group.group_id)
        kept_since = group.offsets_kept_since()
        expired = []
        for partition, committed in self.of_group(group.group_id).items():
            since = None if partition in pending else kept_since(partition.topic, committed)
            if since is not None:
                own = committed.expire_timestamp
                if (own if own != -1 else since + kept_ms) <= now_ms:
                    expired.append(partition)
        return expired

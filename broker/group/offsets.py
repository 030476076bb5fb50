"""The offsets that groups have committed: how far each has read every partition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from broker.coordinator.decision import CoordinatorRecord
from broker.group.group import Group
from broker.group.records import CommittedOffset, offset_record
from broker.group.states import GroupState
from broker.group.subscription import subscribed_topics

Partition = tuple[str, int]

_NONE: Final[Mapping[Partition, CommittedOffset]] = {}


class Offsets:
    """Of the groups of one coordinator partition. Only `replay` changes them."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Partition, CommittedOffset]] = {}

    def of_group(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        return self._by_group.get(group_id, _NONE)

    def replay(self, group_id: str, partition: Partition, committed: CommittedOffset | None) -> None:
        offsets = self._by_group.setdefault(group_id, {})
        if committed is not None:
            offsets[partition] = committed
        else:
            offsets.pop(partition, None)
            if not offsets:
                del self._by_group[group_id]

    def tombstones(self, group_id: str, partitions: Iterable[Partition]) -> list[CoordinatorRecord]:
        """What deletes these offsets, of those that there are."""
        known = self.of_group(group_id)
        return [offset_record(group_id, *partition, None) for partition in partitions if partition in known]

    def of_topics(self, topics: Collection[str]) -> list[CoordinatorRecord]:
        """What deletes all offsets of topics that are no more."""
        return [
            offset_record(group_id, *partition, None)
            for group_id, offsets in self._by_group.items()
            for partition in offsets
            if partition[0] in topics
        ]

    def expired(self, group: Group, now_ms: int, kept_ms: int) -> list[Partition]:
        """Whose time is over.

        Offsets of a group with members stay, except of topics that it no longer reads. Others expire some time after
        the group became empty, or, if they never had to do with members, after they were committed.
        """
        offsets = self.of_group(group.group_id)
        if group.protocol_type is None:
            return _older(offsets, now_ms, lambda committed: committed.commit_timestamp, kept_ms)
        if group.is_in(GroupState.EMPTY):
            empty_since = group.state_since_ms
            return _older(offsets, now_ms, lambda committed: max(committed.commit_timestamp, empty_since), kept_ms)
        topics = subscribed_topics(group)
        if group.is_in(GroupState.STABLE) and topics is not None:
            unread = {partition: committed for partition, committed in offsets.items() if partition[0] not in topics}
            return _older(unread, now_ms, lambda committed: committed.commit_timestamp, kept_ms)
        return []


def _older(
    offsets: Mapping[Partition, CommittedOffset], now_ms: int, since: Callable[[CommittedOffset], int], kept_ms: int
) -> list[Partition]:
    return [
        partition
        for partition, committed in offsets.items()
        if (committed.expire_timestamp if committed.expire_timestamp != -1 else since(committed) + kept_ms) <= now_ms
    ]

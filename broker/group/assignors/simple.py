"""The `simple` assignor of share groups: a partition may go to several members, and all partitions to equally many.

Kafka's SimpleAssignor of 4.3. If there are more members than partitions, each partition is shared by so many members
that everybody has one. Members keep what they have, as far as that leaves nobody with more than the others, and no
partition with more members than it needs. If members subscribe to different topics, each topic is assigned by itself.
The result equals Kafka's down to the single partition, with the order of keys that `hash_order` describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import ceil
from typing import Generic, TypeVar

from barnabas.broker.group.assignors.hash_order import (
    HashTable,
    in_hash_order,
    partition_hash,
    string_hash,
    topic_id_hash,
    topic_partition_hash,
)
from barnabas.broker.group.assignors.spec import (
    Assignment,
    GroupSpec,
    SubscriptionType,
    TopicPartitions,
    partition_count,
)

Partition = TypeVar("Partition")
_Assigned = dict[bytes, set[int]]  # of one member


def assign(
    spec: GroupSpec, topics: Mapping[bytes, TopicPartitions], assignable: Mapping[bytes, AbstractSet[int]]
) -> Assignment:
    """Only `assignable` partitions are handed out: those whose state has been initialized."""
    member_ids = in_hash_order(spec.members, string_hash)
    subscribed = sorted({id for each in spec.members.values() for id in each.topic_ids})
    targets = {
        topic_id: [index for index in range(partition_count(topic_id, topics)) if index in assignable.get(topic_id, ())]
        for topic_id in subscribed
    }
    if not subscribed:
        return {member_id: {} for member_id in spec.members}
    owned = [_owned(spec.members[member_id].owned) for member_id in member_ids]
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        _assign_all(owned, targets)
    else:
        for topic_id, indexes in targets.items():
            members = [i for i, each in enumerate(member_ids) if topic_id in spec.members[each].topic_ids]
            _assign_topic(owned, topic_id, indexes, members)
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}
        for member_id, assigned in zip(member_ids, owned, strict=True)
    }


def _owned(owned: Mapping[bytes, AbstractSet[int]]) -> _Assigned:
    return {topic_id: set(owned[topic_id]) for topic_id in in_hash_order(owned, topic_id_hash)}


def _assign_all(owned: Sequence[_Assigned], targets: Mapping[bytes, Sequence[int]]) -> None:
    """All members subscribe to the same topics: the partitions of all of them are one pool."""
    pool = [(topic_id, index) for topic_id, indexes in targets.items() for index in indexes]
    sharing = _Sharing(
        range(len(owned)),
        pool,
        topic_partition_hash,
        lambda member, partition: owned[member].setdefault(partition[0], set()).add(partition[1]),
        lambda member, partition: owned[member][partition[0]].discard(partition[1]),
    )
    for member, assigned in enumerate(owned):
        for topic_id in [each for each in assigned if each not in targets]:
            del assigned[topic_id]
        for topic_id, indexes in assigned.items():
            for index in in_hash_order(sorted(indexes), partition_hash):
                sharing.holds(member, (topic_id, index))
    sharing.even_out()


def _assign_topic(owned: Sequence[_Assigned], topic_id: bytes, targets: Sequence[int], members: Sequence[int]) -> None:
    sharing = _Sharing(
        members,
        targets,
        partition_hash,
        lambda member, index: owned[member].setdefault(topic_id, set()).add(index),
        lambda member, index: owned[member][topic_id].discard(index),
    )
    for member, assigned in enumerate(owned):
        for index in in_hash_order(sorted(assigned.get(topic_id, ())), partition_hash):
            sharing.holds(member, index)
    sharing.even_out()


class _Sharing(Generic[Partition]):
    """Partitions that members share, as they are evened out. Members go by their position in the group."""

    def __init__(
        self,
        members: Sequence[int],
        targets: Sequence[Partition],
        hash_of: Callable[[Partition], int],
        give: Callable[[int, Partition], None],
        take: Callable[[int, Partition], None],
    ) -> None:
        """`give` and `take` change what a member is assigned."""
        self._members = members
        self._targets = targets
        self._hash_of = hash_of
        self._do_give = give
        self._do_take = take
        self._partitions = HashTable(hash_of, len(targets), newest_first=True)
        self._holders: dict[Partition, HashTable[int]] = {}
        self._held: dict[int, HashTable[Partition]] = {}
        # So many members share each partition, and each member has so many partitions.
        self._sharing = -(-len(members) // len(targets)) if targets else 0
        share = self._sharing * len(targets) / len(members)
        self._wanted = {
            member: ceil(share * (position + 1)) - ceil(share * position) for position, member in enumerate(members)
        }

    def holds(self, member: int, partition: Partition) -> None:
        """A member has a partition at the beginning, whether it may keep it or not."""
        self._note(partition)
        self._holders[partition].add(member)
        self._held.setdefault(member, HashTable(self._hash_of)).add(partition)

    def even_out(self) -> None:
        for member, held in self._held.items():
            for partition in held.listed()[: max(len(held) - self._wanted.get(member, 0), 0)]:
                self._take(member, partition)
        for partition in self._partitions.listed():
            holders = self._holders[partition]
            for member in holders.listed()[: max(len(holders) - self._sharing, 0)]:
                self._take(member, partition)
        for partition in self._targets:
            self._note(partition)
        self._hand_out()

    def _hand_out(self) -> None:
        """Go round the members that have too few, until they have enough or nobody can take what is left."""
        waiting = dict.fromkeys(each for each in self._members if self._has(each) < self._wanted[each])
        turn: Iterator[int] = iter(list(waiting))
        has_given = False
        for partition in self._partitions.listed():
            holders = self._holders[partition]
            missing = self._sharing - len(holders)
            while missing > 0 and waiting:
                member = next(turn, None)
                if member is None:
                    if not has_given:
                        break
                    turn, has_given = iter(list(waiting)), False
                elif member not in holders:
                    holders.add(member)
                    self._held.setdefault(member, HashTable(self._hash_of)).add(partition)
                    self._do_give(member, partition)
                    missing -= 1
                    has_given = True
                    if self._has(member) >= self._wanted[member]:
                        del waiting[member]

    def _has(self, member: int) -> int:
        return len(self._held.get(member, ()))

    def _note(self, partition: Partition) -> None:
        self._partitions.add(partition)
        if partition not in self._holders:
            self._holders[partition] = HashTable(partition_hash)

    def _take(self, member: int, partition: Partition) -> None:
        self._holders[partition].remove(member)
        self._held[member].remove(partition)
        self._do_take(member, partition)

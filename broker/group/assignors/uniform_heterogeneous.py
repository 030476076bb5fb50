"""The uniform assignment of a group whose members subscribe to different topics.

Members keep what they own of their topics. Topic by topic, what nobody owns goes to the subscribers with the fewest
partitions. Then, topic by topic again, partitions move from the subscribers with the most to those with the fewest. A
move for one topic may make another one uneven, so this is repeated until nothing moves, or 16 times.

The order of the topics: most partitions per subscriber first, then fewest subscribers, then the topic id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, repeat

from barnabas.broker.group.assignors.hash_order import in_hash_order, string_hash
from barnabas.broker.group.assignors.loads import Loads
from barnabas.broker.group.assignors.spec import Assignment, GroupSpec, TopicPartitions, partition_count

ROUNDS = 16
NOBODY = -1


def assign(spec: GroupSpec, topics: Mapping[bytes, TopicPartitions]) -> Assignment:
    builder = _Builder(spec, topics)
    builder.hand_out()
    builder.even_out()
    return builder.assignment()


class _Builder:
    """The assignment as it grows. Members go by their position in Kafka's order, which also breaks ties."""

    def __init__(self, spec: GroupSpec, topics: Mapping[bytes, TopicPartitions]) -> None:
        self._member_ids = in_hash_order(spec.members, string_hash)
        self._subscribers: dict[bytes, list[int]] = {}  # of each topic, ascending
        self._owners: dict[bytes, list[int]] = {}  # of each topic's partitions
        self._targets: list[dict[bytes, set[int]]] = []  # of each member
        self._sizes: list[int] = []  # how many partitions each member has
        for position, member_id in enumerate(self._member_ids):
            for topic_id in spec.members[member_id].topic_ids:
                self._subscribers.setdefault(topic_id, []).append(position)
        counts = {topic_id: partition_count(topic_id, topics) for topic_id in sorted(self._subscribers)}
        self._topic_ids = sorted(counts, key=lambda id: _rank(id, counts[id], len(self._subscribers[id])))
        for topic_id, count in counts.items():
            self._owners[topic_id] = [NOBODY] * count
        for position, member_id in enumerate(self._member_ids):
            member = spec.members[member_id]
            target = {id: set(partitions) for id, partitions in member.owned.items() if id in member.topic_ids}
            for topic_id, partitions in target.items():
                for partition in partitions:
                    self._owners[topic_id][partition] = position
            self._targets.append(target)
            self._sizes.append(sum(map(len, target.values())))

    def hand_out(self) -> None:
        """Give away what nobody owns."""
        for topic_id in self._topic_ids:
            loads = Loads(self._subscribers[topic_id], self._sizes)
            for partition, owner in enumerate(self._owners[topic_id]):
                if owner == NOBODY:
                    self._give(topic_id, partition, loads.lightest())

    def even_out(self) -> None:
        topic_ids = [topic_id for topic_id in self._topic_ids if len(self._subscribers[topic_id]) > 1]
        since_last_move = -1  # how many topics were left as they are
        for topic_id in chain.from_iterable(repeat(topic_ids, ROUNDS)):
            since_last_move = 0 if self._even_out_topic(topic_id) else since_last_move + 1
            if since_last_move == len(topic_ids) - 1:  # all others
                return

    def assignment(self) -> Assignment:
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in target.items()}
            for member_id, target in zip(self._member_ids, self._targets, strict=True)
        }

    def _even_out_topic(self, topic_id: bytes) -> bool:
        """Move partitions of one topic, each member's last ones first; False if none had to move."""
        loads = Loads(self._subscribers[topic_id], self._sizes)
        if loads.spread <= 1:
            return False
        movable = _by_owner(self._owners[topic_id])
        has_moved = False
        while not loads.is_even:
            heaviest = loads.heaviest()
            while heaviest is not None and not movable.get(heaviest):
                loads.leave_out_heaviest()
                heaviest = loads.heaviest()
            if heaviest is None:
                break
            lightest = loads.lightest()
            if loads.is_even:
                break
            partition = movable[heaviest].pop()
            self._take(topic_id, partition, heaviest)
            self._give(topic_id, partition, lightest)
            has_moved = True
        return has_moved

    def _give(self, topic_id: bytes, partition: int, member: int) -> None:
        self._targets[member].setdefault(topic_id, set()).add(partition)
        self._owners[topic_id][partition] = member
        self._sizes[member] += 1

    def _take(self, topic_id: bytes, partition: int, member: int) -> None:
        partitions = self._targets[member][topic_id]
        partitions.remove(partition)
        if not partitions:
            del self._targets[member][topic_id]
        self._sizes[member] -= 1


def _rank(topic_id: bytes, count: int, subscribers: int) -> tuple[float, int, int, int]:
    """Where a topic stands. Kafka compares the halves of an id as signed numbers."""
    first, second = (int.from_bytes(half, signed=True) for half in (topic_id[:8], topic_id[8:]))
    return -count / subscribers, subscribers, first, second


def _by_owner(owners: Iterable[int]) -> dict[int, list[int]]:
    """Each member's partitions, ascending."""
    grouped: dict[int, list[int]] = {}
    for partition, owner in enumerate(owners):
        grouped.setdefault(owner, []).append(partition)
    return grouped

"""The uniform assignment of a group whose members all subscribe to the same topics.

Each member has a quota: its share of all partitions, and some have one partition more. It keeps what it owns up to its
quota; what is left over goes to those that are below theirs, in the order of the members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from barnabas.broker.group.assignors.hash_order import in_hash_order, partition_hash, string_hash, topic_id_hash
from barnabas.broker.group.assignors.spec import (
    Assignment,
    GroupSpec,
    PartitionAssignorError,
    TopicPartitions,
    partition_count,
)


def assign(spec: GroupSpec, topics: Mapping[bytes, TopicPartitions]) -> Assignment:
    member_ids = in_hash_order(spec.members, string_hash)
    topic_ids = spec.members[member_ids[0]].topic_ids
    counts = {id: partition_count(id, topics) for id in in_hash_order(sorted(topic_ids), topic_id_hash)}
    free = _nobodys(spec, counts)
    assignment: Assignment = {}
    missing: list[tuple[str, int]] = []  # how many partitions a member lacks

    quota, extras = divmod(sum(counts.values()), len(member_ids))
    for position, member_id in enumerate(member_ids):
        room = quota + (extras > 0)
        owned = spec.members[member_id].owned
        size = sum(map(len, owned.values()))
        if size > room or not owned.keys() <= counts.keys():
            owned, size = _kept(owned, counts, room, free)
        assignment[member_id] = owned
        room -= size
        # Those that own one partition more than the others keep it: a member that would have to be given its extra
        # leaves it to them, unless there are as many extras as members left.
        if extras > 0:
            if room > 0 and len(member_ids) - position > extras:
                room -= 1
            else:
                extras -= 1
        if room > 0:
            missing.append((member_id, room))

    handed_out = iter(free)
    for member_id, room in missing:
        assignment[member_id] = _with(assignment[member_id], islice(handed_out, room))
    if next(handed_out, None) is not None:
        raise PartitionAssignorError("Partitions were left unassigned")
    return assignment


def _kept(
    owned: Mapping[bytes, frozenset[int]], counts: Mapping[bytes, int], room: int, free: list[tuple[bytes, int]]
) -> tuple[Mapping[bytes, frozenset[int]], int]:
    """What a member keeps of what it owns, and how much that is. The rest of its topics is free for others."""
    kept: dict[bytes, frozenset[int]] = {}
    size = 0
    for topic_id in in_hash_order(owned, topic_id_hash):
        if topic_id not in counts:
            continue
        partitions = owned[topic_id]
        if size + len(partitions) > room:
            listed = in_hash_order(sorted(partitions), partition_hash)
            partitions = frozenset(listed[: room - size])
            free += [(topic_id, partition) for partition in listed[room - size :]]
        if partitions:
            kept[topic_id] = partitions
            size += len(partitions)
    return kept, size


def _with(owned: Mapping[bytes, frozenset[int]], gained: Iterable[tuple[bytes, int]]) -> Mapping[bytes, frozenset[int]]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in gained:
        by_topic.setdefault(topic_id, []).append(partition)
    return {**owned, **{topic_id: owned.get(topic_id, frozenset()).union(by_topic[topic_id]) for topic_id in by_topic}}


def _nobodys(spec: GroupSpec, counts: Mapping[bytes, int]) -> list[tuple[bytes, int]]:
    """The partitions that no member owns."""
    free: list[tuple[bytes, int]] = []
    for topic_id, count in counts.items():
        owned = set[int]().union(*(member.owned.get(topic_id, ()) for member in spec.members.values()))
        if len(owned) < count:
            free += [(topic_id, partition) for partition in range(count) if partition not in owned]
    return free

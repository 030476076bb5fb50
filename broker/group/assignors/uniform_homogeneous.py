"""The uniform assignment of a group whose members all subscribe to the same topics.

Each member has a quota: its share of all partitions, and some have one partition more. It keeps what it owns up to its
quota; what is left over goes to those that are below theirs, in the order of the members.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    kept: dict[str, dict[bytes, set[int]]] = {}
    missing: list[tuple[str, int]] = []  # how many partitions a member lacks

    quota, extras = divmod(sum(counts.values()), len(member_ids))
    for position, member_id in enumerate(member_ids):
        room = quota + (extras > 0)
        keeps = kept[member_id] = {}
        owned = spec.members[member_id].owned
        for topic_id in in_hash_order(owned, topic_id_hash):
            if topic_id not in counts:
                continue
            partitions = owned[topic_id]
            if len(partitions) > room:
                listed = in_hash_order(sorted(partitions), partition_hash)
                partitions = frozenset(listed[:room])
                free += [(topic_id, partition) for partition in listed[room:]]
            if partitions:
                keeps[topic_id] = set(partitions)
                room -= len(partitions)
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
        for topic_id, partition in islice(handed_out, room):
            kept[member_id].setdefault(topic_id, set()).add(partition)
    if next(handed_out, None) is not None:
        raise PartitionAssignorError("Partitions were left unassigned")
    return {
        member_id: {topic_id: tuple(sorted(partitions)) for topic_id, partitions in keeps.items()}
        for member_id, keeps in kept.items()
    }


def _nobodys(spec: GroupSpec, counts: Mapping[bytes, int]) -> list[tuple[bytes, int]]:
    """The partitions that no member owns."""
    owned: dict[bytes, set[int]] = {topic_id: set() for topic_id in counts}
    for member in spec.members.values():
        for topic_id, partitions in member.owned.items():
            if topic_id in owned:
                owned[topic_id] |= partitions
    return [
        (topic_id, partition)
        for topic_id, count in counts.items()
        for partition in range(count)
        if partition not in owned[topic_id]
    ]

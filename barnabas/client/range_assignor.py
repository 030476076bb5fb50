"""Kafka's range assignor: each reader of a topic gets a range of its partitions, all of nearly equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.protocol.topic_partition import TopicPartition


def assign(
    subscriptions: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Each member's partitions, given each member's topics. The first members get the partitions that are left over."""
    assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic, count in sorted(partition_counts.items()):
        readers = [member for member, topics in subscriptions.items() if topic in topics]
        if not readers:
            continue
        share, left_over = divmod(count, len(readers))
        begin = 0
        for number, member in enumerate(readers):
            end = begin + share + (number < left_over)
            assignment[member] += [TopicPartition(topic, index) for index in range(begin, end)]
            begin = end
    return assignment

"""Where partitions begin and end, and how far groups have read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple

from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.errors import check
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

_CONSUMER: Final = -1


class Membership(NamedTuple):
    """Who commits. A commit from outside a group, as an administrator's, has no member and no generation."""

    member_id: str = ""
    generation: int = -1


NOBODY: Final = Membership()


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions as requests name them: each topic once, with its indexes."""
    return [
        (topic, [each.partition for each in group])
        for topic, group in groupby(sorted(partitions), key=lambda each: each.topic)
    ]


def list_offsets(
    client: Client, timestamps: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """For each partition the first offset at a time (in ms) or later, -1 if there is none; or at EARLIEST, LATEST."""

    def attempt() -> dict[TopicPartition, int]:
        leaders = client.leaders(list(timestamps))
        offsets = {}
        for leader in set(leaders.values()):
            led = [each for each in timestamps if leaders[each] == leader]
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=isolation,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index, timestamp=timestamps[TopicPartition(topic, index)]
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(led)
                ],
                timeout_ms=int(client.timeout * 1000),
            )
            for topic in client.broker(leader).ask(request, ListOffsetsResponse).topics:
                for found in topic.partitions:
                    partition = TopicPartition(topic.name, found.partition_index)
                    check(found.error_code, f"partition {partition}")
                    offsets[partition] = found.offset
        return offsets

    return client.settled(attempt) if timestamps else {}


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, int]:
    """Everything that a group has committed; nothing if there is no such group."""

    def attempt() -> dict[TopicPartition, int]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        (found,) = client.coordinator(group).ask(request, OffsetFetchResponse).groups
        check(found.error_code, f"group '{group}'")
        committed = {}
        for topic in found.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                check(each.error_code, f"group '{group}' in {partition}")
                if each.committed_offset >= 0:
                    committed[partition] = each.committed_offset
        return committed

    return client.settled(attempt)


def commit_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, int], membership: Membership = NOBODY
) -> None:
    """Commit, or BrokerError for the first partition that was refused."""
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=membership.generation,
        member_id=membership.member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)],
                        committed_metadata="",
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(offsets)
        ],
    )

    def attempt() -> None:
        for topic in client.coordinator(group).ask(request, OffsetCommitResponse).topics:
            for each in topic.partitions:
                check(
                    each.error_code, f"committing the offset of group '{group}' in {topic.name}-{each.partition_index}"
                )

    if offsets:
        client.settled(attempt)


def begin_and_end(
    client: Client, partitions: Collection[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset of each and the one after its last, which is the last stable one under READ_COMMITTED."""
    begins = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST), isolation)
    return {each: (begins[each], ends[each]) for each in partitions}

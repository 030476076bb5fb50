"""Where partitions begin and end, and how far groups have read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.errors import check
from barnabas.client.requests import data, groups
from barnabas.client.requests.data import EARLIEST, LATEST
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_offsets import ListOffsetsResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchResponse
from barnabas.protocol.topic_partition import TopicPartition

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Membership(NamedTuple):
    """Who commits. An administrator who resets offsets is not a member and has no generation."""

    member_id: str = ""
    generation: int = -1


NOBODY: Final = Membership()


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions grouped as in requests: each topic once, with its indexes."""
    return [
        (topic, [each.partition for each in group])
        for topic, group in groupby(sorted(partitions), key=lambda each: each.topic)
    ]


def list_offsets(
    client: Client, timestamps: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """For each partition, the first offset at or after a timestamp, -1 if there is none; or at EARLIEST or LATEST."""

    def attempt() -> dict[TopicPartition, int]:
        leaders = client.leaders(list(timestamps))
        offsets = {}
        for leader in set(leaders.values()):
            led = sorted(each for each in timestamps if leaders[each] == leader)
            request = data.list_offsets(
                *((topic, index, timestamps[TopicPartition(topic, index)]) for topic, index in led),
                isolation_level=isolation,
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
    """All offsets that a group has committed; none if there is no such group."""

    def attempt() -> dict[TopicPartition, int]:
        connection = client.coordinator(group)
        request = groups.offset_fetch(connection.version(ApiKey.OFFSET_FETCH), {group: None})
        (found,) = connection.ask(request, OffsetFetchResponse).groups
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
    """BrokerError for the first partition whose offset was refused."""
    request = groups.offset_commit(
        group,
        *((topic, index, offset) for (topic, index), offset in sorted(offsets.items())),
        member=membership.member_id,
        generation=membership.generation,
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
    """The first offset of each partition and the one after its last; with READ_COMMITTED, its last stable offset."""
    begins = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST), isolation)
    return {each: (begins[each], ends[each]) for each in partitions}

"""OffsetFetch (key 9): how far groups have read.

Version 2 asks for all partitions at once; 5 tells leader epochs; 7 can refuse offsets that a transaction may still
change; 8 asks for several groups; 10 names topics by id. A partition without a committed offset has -1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.group.records import CommittedOffset, Partition
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from broker.broker import Broker


class Stored(NamedTuple):
    """A group's offsets, and those of them that a transaction may still change, if that matters to who asks."""

    committed: Mapping[Partition, CommittedOffset]
    unstable: Collection[Partition]

    def of(self, topic: str, index: int) -> tuple[CommittedOffset, ErrorCode]:
        if (topic, index) in self.unstable:
            return _NEVER, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return self.committed.get((topic, index), _NEVER), ErrorCode.NONE


_NEVER: Final = CommittedOffset(-1, -1, "", -1)
_NOTHING: Final = Stored({}, ())


def handle(broker: Broker, request: Request, message: OffsetFetchRequest) -> OffsetFetchResponse:
    stable = message.require_stable
    if request.version >= 8:
        groups = [_group(broker, request.version, group, stable) for group in message.groups]
        return OffsetFetchResponse(groups=groups)
    error = broker.groups.objection(message.group_id)
    stored = _NOTHING if error else _stored(broker, message.group_id, stable)
    topics = None if message.topics is None else [(topic.name, topic.partition_indexes) for topic in message.topics]
    wanted = _wanted(topics, stored)
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                name=topic,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                        error_code=error or instability,
                    )
                    for index in indexes
                    for found, instability in (stored.of(topic, index),)
                ],
            )
            for topic, indexes in wanted
        ],
    )


def _stored(broker: Broker, group_id: str, stable: bool) -> Stored:
    offsets = broker.groups.shard(group_id).offsets
    return Stored(offsets.of_group(group_id), offsets.pending.of_group(group_id) if stable else ())


def _wanted(topics: list[tuple[str, list[int]]] | None, stored: Stored) -> list[tuple[str, list[int]]]:
    """The partitions that are asked for: those that are named, or all that there are."""
    if topics is not None:
        return topics
    found: dict[str, list[int]] = {}
    for topic, index in stored.committed:
        found.setdefault(topic, []).append(index)
    return list(found.items())


def _group(broker: Broker, version: int, group: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    error = broker.groups.objection(group.group_id)
    if error:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error)
    stored = _stored(broker, group.group_id, stable)
    named = None
    unknown = []
    if group.topics is not None:
        named = []
        for topic in group.topics:
            image = broker.cluster.topic_by_id(topic.topic_id) if version >= 10 else None
            if version >= 10 and image is None:
                unknown.append(_unknown(topic.topic_id, topic.partition_indexes))
            else:
                named.append((image.name if image is not None else topic.name, topic.partition_indexes))
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=unknown + [_topic(broker, version, topic, indexes, stored) for topic, indexes in _wanted(named, stored)],
    )


def _topic(broker: Broker, version: int, topic: str, indexes: list[int], stored: Stored) -> OffsetFetchResponseTopics:
    image = broker.cluster.topic(topic) if version >= 10 else None
    return OffsetFetchResponseTopics(
        name=topic,
        topic_id=image.topic_id if image is not None else ZERO_UUID,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=instability,
            )
            for index in indexes
            for found, instability in (stored.of(topic, index),)
        ],
    )


def _unknown(topic_id: bytes, indexes: list[int]) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in indexes
        ],
    )

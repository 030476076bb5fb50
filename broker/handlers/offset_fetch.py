"""OffsetFetch (key 9): how far groups have read.

Version 2 can ask for all partitions; 5 adds leader epochs; 7 can refuse offsets that a transaction may still change; 8
asks for several groups; 9 names the member that asks, which is refused if the group has moved on without it; 10 names
topics by id. A partition without a committed offset has -1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.schema import ZERO_UUID
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class Stored(NamedTuple):
    """A group's offsets, and those that a transaction may still change if the client wants stable ones."""

    committed: Mapping[TopicPartition, CommittedOffset]
    unstable: Collection[TopicPartition]

    def of(self, topic: str, index: int, topic_id: bytes = ZERO_UUID) -> tuple[CommittedOffset, ErrorCode]:
        """With the topic's id, nothing that was committed for an earlier topic of the same name."""
        partition = TopicPartition(topic, index)
        if partition in self.unstable:
            return _NOT_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
        found = self.committed.get(partition, _NOT_COMMITTED)
        if topic_id != ZERO_UUID and found.is_of_another(topic_id):
            found = _NOT_COMMITTED
        return found, ErrorCode.NONE


_NOT_COMMITTED: Final = CommittedOffset(-1, -1, "", -1)
_NOTHING: Final = Stored({}, ())
_NOT_AUTHORIZED: Final = (_NOT_COMMITTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def handle(broker: Broker, request: Request, message: OffsetFetchRequest) -> Steps[OffsetFetchResponse | None]:
    response = yield from _response(broker, request, message)
    group_ids = [group.group_id for group in message.groups] if request.version >= 8 else [message.group_id]
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.groups, group_ids, response, again)


def _response(broker: Broker, request: Request, message: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    stable = message.require_stable
    if request.version >= 8:
        groups = []
        whole: dict[str, OffsetFetchResponseGroup] = {}
        for group in message.groups:
            # All offsets of a group are a long answer to a few bytes, so the same question gets the same object.
            answer = whole.get(group.group_id) if group.topics is None else None
            if answer is None:
                answer = yield from _group(broker, request, group, stable)
                if group.topics is None:
                    whole[group.group_id] = answer
            groups.append(answer)
            yield
        return OffsetFetchResponse(groups=groups)
    access = request.access
    error = _objection(broker, access, message.group_id)
    if error == ErrorCode.GROUP_AUTHORIZATION_FAILED and request.version >= 2:
        return OffsetFetchResponse(error_code=error, topics=[])
    stored = _NOTHING if error else _stored(broker, message.group_id, stable)
    named = None if message.topics is None else [(topic.name, topic.partition_indexes) for topic in message.topics]
    topics = []
    for topic, indexes in named if named is not None else (yield from _all(stored)):
        partitions = []
        allowed = access.topic(AclOperation.DESCRIBE, topic)
        if not allowed and named is None:
            continue
        for index in indexes:
            found, instability = stored.of(topic, index) if allowed else _NOT_AUTHORIZED
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    metadata=found.metadata,
                    error_code=error or instability,
                )
            )
            yield
        topics.append(OffsetFetchResponseTopic(name=topic, partitions=partitions))
        yield
    return OffsetFetchResponse(error_code=error, topics=topics)


def _objection(broker: Broker, access: Access, group_id: str) -> ErrorCode:
    if not access.group(AclOperation.DESCRIBE, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return broker.groups.objection(group_id)


def _stored(broker: Broker, group_id: str, stable: bool) -> Stored:
    offsets = broker.groups.shard(group_id).offsets
    return Stored(offsets.of_group(group_id), offsets.pending.of_group(group_id) if stable else ())


def _all(stored: Stored) -> Steps[Sequence[tuple[str, list[int]]]]:
    """All partitions that a group has committed an offset for, by topic."""
    found: dict[str, list[int]] = {}
    for topic, index in list(stored.committed):
        found.setdefault(topic, []).append(index)
        yield
    return list(found.items())


def _group(
    broker: Broker, request: Request, group: OffsetFetchRequestGroup, stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    version, access = request.version, request.access
    error = _objection(broker, access, group.group_id)
    if not error and version >= 9:
        error = broker.groups.shard(group.group_id).objection_to_fetch(
            group.group_id, group.member_id, group.member_epoch
        )
    if error:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error)
    stored = _stored(broker, group.group_id, stable)
    topics = []
    if group.topics is None:
        for name, indexes in (yield from _all(stored)):
            if not access.topic(AclOperation.DESCRIBE, name):
                continue
            image = broker.cluster.topic(name) if version >= 10 else None
            topic_id = image.topic_id if image is not None else ZERO_UUID
            topics.append((yield from _topic(name, topic_id, indexes, stored)))
    else:
        for topic in group.topics:
            image = broker.cluster.topic_by_id(topic.topic_id) if version >= 10 else None
            name = topic.name if image is None else image.name
            is_unknown = image is None and version >= 10
            if not is_unknown and not access.topic(AclOperation.DESCRIBE, name):
                denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                topics.append((yield from _refused(topic, denied)))
            elif image is not None:
                topics.append((yield from _topic(image.name, topic.topic_id, topic.partition_indexes, stored)))
            elif version >= 10:
                topics.append((yield from _refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)))
            else:
                topics.append((yield from _topic(topic.name, ZERO_UUID, topic.partition_indexes, stored)))
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _topic(name: str, topic_id: bytes, indexes: list[int], stored: Stored) -> Steps[OffsetFetchResponseTopics]:
    partitions = []
    for index in indexes:
        found, instability = stored.of(name, index, topic_id)
        partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=instability,
            )
        )
        yield
    yield
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> Steps[OffsetFetchResponseTopics]:
    partitions = yield from each(
        lambda index: OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, metadata="", error_code=error
        ),
        topic.partition_indexes,
    )
    yield
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

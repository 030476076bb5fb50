"""Requests of consumer groups, in one line each, and which version of each goes with the others.

A `level` is the age of a client: the version of JoinGroup that it would use, and of every other request the one that
is nearest to it. The levels together cover every version of every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from protocol.api import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.requests import Topic, named

VERSIONS = {
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.DELETE_GROUPS: range(3),
    ApiKey.OFFSET_DELETE: range(1),
}
LEVELS = range(11)
STATIC_MEMBERS = range(7, 11)  # from here on every request can name an instance

# What a member can be assigned by, with its subscription.
Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str) -> bytes:
    """What a consumer joins with: version, topics, no data of its own."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


# As a consumer of the topic "t" joins.
RANGE: Protocols = (("range", subscription("t")),)


def version_at(key: ApiKey, level: int) -> int:
    versions = VERSIONS[key]
    return min(max(level, versions.start), versions.stop - 1)


def find_coordinator(version: int, *keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    if version >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    (key,) = keys
    return FindCoordinatorRequest(key_type=key_type, key=key)


def join(group: str, member: str = "", *, protocols: Protocols = RANGE, **fields: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{"session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **fields},
        group_id=group,
        member_id=member,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def sync(
    group: str, member: str, generation: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    given = [SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()]
    return SyncGroupRequest(group_id=group, member_id=member, generation_id=generation, assignments=given, **fields)


def heartbeat(group: str, member: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member, generation_id=generation, **fields)


def leave(version: int, group: str, *members: str | tuple[str, str | None]) -> LeaveGroupRequest:
    """Members by their ids, or as (member id, instance id)."""
    if version < 3:
        (member,) = members
        return LeaveGroupRequest(group_id=group, member_id=member)
    pairs = [(member, None) if isinstance(member, str) else member for member in members]
    identities = [MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in pairs]
    return LeaveGroupRequest(group_id=group, members=identities)


def commit(
    group: str,
    *offsets: tuple[Topic, int, int],
    member: str = "",
    generation: int = -1,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """Commit (topic, partition, offset), one or several."""
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                **named("name", topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for _, index, offset in parts
                ],
            )
            for topic, parts in groupby(offsets, key=lambda part: part[0])
        ],
        **fields,
    )


def fetch_offsets(
    version: int, groups: Mapping[str, Iterable[tuple[Topic, Sequence[int]]] | None], **fields: Any
) -> OffsetFetchRequest:
    """Ask for (topic, partitions) of groups; for None, for all that a group has. Before version 8, of one group."""
    if version >= 8:
        return OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=None
                    if topics is None
                    else [
                        OffsetFetchRequestTopics(**named("name", topic), partition_indexes=list(indexes))
                        for topic, indexes in topics
                    ],
                )
                for group, topics in groups.items()
            ],
            **fields,
        )
    ((group, topics),) = groups.items()
    return OffsetFetchRequest(
        group_id=group,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopic(name=topic, partition_indexes=list(indexes)) for topic, indexes in topics],
        **fields,
    )


def delete_offsets(group: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for _, index in parts]
            )
            for topic, parts in groupby(partitions, key=lambda part: part[0])
        ],
    )


def assignment(topic: str, *partitions: int) -> bytes:
    """What a consumer is assigned, of one topic: version, partitions, no data of its own."""
    indexes = b"".join(index.to_bytes(4, "big") for index in partitions)
    name = len(topic).to_bytes(2, "big") + topic.encode()
    return b"\0\0" + b"\0\0\0\1" + name + len(partitions).to_bytes(4, "big") + indexes + b"\xff\xff\xff\xff"

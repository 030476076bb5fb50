"""Requests of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from barnabas.client.requests.topics import Topic, by_topic, topic_field
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription, with_version
from barnabas.protocol.consumer_protocol import TopicPartition as AssignedTopic
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

CONSUMERS: Final = "consumer"

# How a member can be assigned partitions, and its subscription.
Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str) -> bytes:
    """What a consumer joins with, in the oldest version: all that range needs, and every client reads it."""
    return with_version(ConsumerProtocolSubscription(topics=list(topics)), 0)


def assignment(*topics: tuple[str, Sequence[int]]) -> bytes:
    """What a consumer is assigned: partitions of topics."""
    assigned = [AssignedTopic(topic=topic, partitions=list(partitions)) for topic, partitions in topics]
    return with_version(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


# How a consumer of the topic "t" joins.
RANGE: Final[Protocols] = (("range", subscription("t")),)
# How it names, when it syncs, the protocol that the group has agreed on.
BY_RANGE: Final[dict[str, Any]] = {"protocol_type": CONSUMERS, "protocol_name": "range"}


def join_group(group: str, member: str = "", *, protocols: Protocols = RANGE, **fields: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{"session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "protocol_type": CONSUMERS, **fields},
        group_id=group,
        member_id=member,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def sync_group(
    group: str, member: str, generation: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
) -> SyncGroupRequest:
    """The leader sends the assignment of each member. From version 5 on, the request names the protocol that the group
    has agreed on, for example with BY_RANGE."""
    return SyncGroupRequest(
        group_id=group,
        member_id=member,
        generation_id=generation,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=assigned)
            for each, assigned in (assignments or {}).items()
        ],
        **fields,
    )


def heartbeat(group: str, member: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member, generation_id=generation, **fields)


def leave_group(
    version: int, group: str, *members: str | tuple[str, str | None], reason: str | None = None
) -> LeaveGroupRequest:
    """Members by their ids, or as (member id, instance id); several from version 3 on."""
    pairs = [(member, None) if isinstance(member, str) else member for member in members]
    if version < 3:
        ((member, _),) = pairs
        return LeaveGroupRequest(group_id=group, member_id=member)
    identities = [
        MemberIdentity(member_id=member, group_instance_id=instance, reason=reason) for member, instance in pairs
    ]
    return LeaveGroupRequest(group_id=group, members=identities)


def consumer_group_heartbeat(
    group: str,
    member: str,
    epoch: int,
    *,
    owned: Mapping[bytes, Sequence[int]] | None = None,
    topics: Sequence[str] | None = None,
    **fields: Any,
) -> ConsumerGroupHeartbeatRequest:
    """A member that joins (epoch 0) says what it reads, and that it owns nothing yet. Others may leave both out."""
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, **fields}
        owned = owned or {}
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=None if topics is None else list(topics),
        topic_partitions=None
        if owned is None
        else [
            RequestTopicPartitions(topic_id=topic_id, partitions=list(indexes)) for topic_id, indexes in owned.items()
        ],
        **fields,
    )


def delete_groups(*groups: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=list(groups))


def offset_commit(
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
                **topic_field("name", topic),
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
            for topic, parts in by_topic(offsets)
        ],
        **fields,
    )


def offset_fetch(
    version: int,
    groups: Mapping[str, Iterable[tuple[Topic, Sequence[int]]] | None],
    members: Mapping[str, tuple[str | None, int]] | None = None,
    **fields: Any,
) -> OffsetFetchRequest:
    """Ask for (topic, partitions) of groups, or with None for all of a group. Before version 8, of one group.

    From version 9, `members` names who asks in a group, with its epoch.
    """
    asking = members or {}
    if version >= 8:
        return OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    member_id=asking.get(group, (None, -1))[0],
                    member_epoch=asking.get(group, (None, -1))[1],
                    topics=None
                    if topics is None
                    else [
                        OffsetFetchRequestTopics(**topic_field("name", topic), partition_indexes=list(indexes))
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
        else [OffsetFetchRequestTopic(name=str(topic), partition_indexes=list(indexes)) for topic, indexes in topics],
        **fields,
    )


def offset_delete(group: str, *parts: tuple[str, int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for _, index in group_parts]
            )
            for topic, group_parts in by_topic(parts)
        ],
    )

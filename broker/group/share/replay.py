"""What each record of a share group changes in it. A live group and one that is being loaded change the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.share.member import LEAVING_EPOCH, Assigned, ShareMember
from barnabas.broker.group.share.partitions import NONE, NamedPartitions, StatePartitions
from barnabas.protocol import share_group_records as records

# Applies a value to a group; None deletes what the key names.
Apply = Callable[[ShareGroup, Any, Any], None]


def _epoch(group: ShareGroup, _: Any, value: records.ShareGroupMetadataValue | None) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _member(
    group: ShareGroup, key: records.ShareGroupMemberMetadataKey, value: records.ShareGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    group.put(
        replace(
            group.members.get(key.member_id) or ShareMember(key.member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )
    )


def _target_epoch(group: ShareGroup, _: Any, value: records.ShareGroupTargetAssignmentMetadataValue | None) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp


def _target(
    group: ShareGroup,
    key: records.ShareGroupTargetAssignmentMemberKey,
    value: records.ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = _read(value.topic_partitions)


def _current(
    group: ShareGroup,
    key: records.ShareGroupCurrentMemberAssignmentKey,
    value: records.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(
            replace(
                member or ShareMember(key.member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                assigned=_read(value.assigned_partitions),
            )
        )
    elif member is not None:
        group.put(replace(member, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned={}))


def _state(group: ShareGroup, _: Any, value: records.ShareGroupStatePartitionMetadataValue | None) -> None:
    if value is None:
        group.state_partitions = NONE
        return
    group.state_partitions = StatePartitions(
        _read_named(value.initializing_topics),
        _read_named(value.initialized_topics),
        {each.topic_id: each.topic_name for each in value.deleting_topics},
    )


def _read(partitions: Iterable[records.ShareTopicPartitions]) -> Assigned:
    return {each.topic_id: frozenset(each.partitions) for each in partitions}


def _read_named(topics: Iterable[records.TopicPartitionsInfo]) -> dict[bytes, NamedPartitions]:
    return {each.topic_id: NamedPartitions(each.topic_name, frozenset(each.partitions)) for each in topics}


APPLY: Final[dict[type, Apply]] = {
    records.ShareGroupMetadataKey: _epoch,
    records.ShareGroupMemberMetadataKey: _member,
    records.ShareGroupTargetAssignmentMetadataKey: _target_epoch,
    records.ShareGroupTargetAssignmentMemberKey: _target,
    records.ShareGroupCurrentMemberAssignmentKey: _current,
    records.ShareGroupStatePartitionMetadataKey: _state,
}

ENDS_GROUP: Final = records.ShareGroupMetadataKey
"""A tombstone with this key is the last of a group."""

ENDS_MEMBER: Final = records.ShareGroupMemberMetadataKey
"""A tombstone with this key says that a member is gone."""

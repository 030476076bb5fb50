"""What each record of a consumer group changes in it. A live group and one that is being loaded change the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, cast

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.broker.group.consumer.member import LEAVING_EPOCH, ConsumerMember, MemberState
from barnabas.broker.group.consumer.records import read_assigned, read_classic, read_state
from barnabas.broker.group.records import ReadRecord
from barnabas.protocol import consumer_group_records as records

# Applies a value to a group; None deletes what the key names.
Apply = Callable[[ConsumerGroup, Any, Any], None]


def _epoch(group: ConsumerGroup, _: Any, value: records.ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _partition_metadata(group: ConsumerGroup, _: Any, value: object | None) -> None:
    group.has_partition_metadata = value is not None


def _member(
    group: ConsumerGroup,
    key: records.ConsumerGroupMemberMetadataKey,
    value: records.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    group.put(
        replace(
            group.members.get(key.member_id) or ConsumerMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=read_classic(value.classic_member_metadata),
        )
    )


def _target_epoch(
    group: ConsumerGroup, _: Any, value: records.ConsumerGroupTargetAssignmentMetadataValue | None
) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp


def _target(
    group: ConsumerGroup,
    key: records.ConsumerGroupTargetAssignmentMemberKey,
    value: records.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def _current(
    group: ConsumerGroup,
    key: records.ConsumerGroupCurrentMemberAssignmentKey,
    value: records.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is None:
        if member is not None:
            gone = replace(member, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, state=MemberState.STABLE)
            group.put(replace(gone, assigned={}, revoking={}))
        return
    group.put(
        replace(
            member or ConsumerMember(key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=read_state(value.state),
            assigned=read_assigned(value.assigned_partitions, value.member_epoch),
            revoking=read_assigned(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _regex(
    group: ConsumerGroup,
    key: records.ConsumerGroupRegularExpressionKey,
    value: records.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.regexes.pop(key.regular_expression, None)
    else:
        group.regexes[key.regular_expression] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


APPLY: Final[dict[type, Apply]] = {
    records.ConsumerGroupMetadataKey: _epoch,
    records.ConsumerGroupPartitionMetadataKey: _partition_metadata,
    records.ConsumerGroupMemberMetadataKey: _member,
    records.ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    records.ConsumerGroupTargetAssignmentMemberKey: _target,
    records.ConsumerGroupCurrentMemberAssignmentKey: _current,
    records.ConsumerGroupRegularExpressionKey: _regex,
}


def applied(group: ConsumerGroup, changes: Iterable[CoordinatorRecord]) -> ConsumerGroup:
    """The group with what these records say."""
    for record in changes:
        key, value = cast(ReadRecord, record.read)
        APPLY[type(key)](group, key, value)
    return group


ENDS_GROUP: Final = records.ConsumerGroupMetadataKey
"""A tombstone with this key is the last of a group."""

ENDS_MEMBER: Final = records.ConsumerGroupMemberMetadataKey
"""A tombstone with this key says that a member is gone."""

"""The records of a share group."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.records import record_of
from barnabas.broker.group.share.member import Assigned, ShareMember
from barnabas.broker.group.share.partitions import NamedPartitions, StatePartitions
from barnabas.protocol import share_group_records as records

_STABLE = 0  # the only state that a member of a share group has


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = records.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return record_of(records.ShareGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = records.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )
    return record_of(records.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Assigned) -> CoordinatorRecord:
    value = records.ShareGroupTargetAssignmentMemberValue(topic_partitions=_write(target))
    return record_of(records.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    value = records.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return record_of(records.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    value = records.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STABLE,
        assigned_partitions=_write(member.assigned),
    )
    return record_of(records.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def state_record(group_id: str, state: StatePartitions) -> CoordinatorRecord:
    value = records.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_write_named(state.initializing),
        initialized_topics=_write_named(state.initialized),
        deleting_topics=[records.TopicInfo(topic_id=id, topic_name=name) for id, name in state.deleting.items()],
    )
    return record_of(records.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order: what a member has goes before the member."""
    return [
        record_of(records.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        record_of(records.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        record_of(records.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Collection[str]) -> list[CoordinatorRecord]:
    return [
        *(record for member_id in member_ids for record in member_tombstones(group_id, member_id)),
        record_of(records.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        record_of(records.ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        record_of(records.ShareGroupMetadataKey(group_id=group_id), None),
    ]


def _write(assigned: Assigned) -> list[records.ShareTopicPartitions]:
    return [
        records.ShareTopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in assigned.items()  # their order matters to the assignor
    ]


def _write_named(topics: Mapping[bytes, NamedPartitions]) -> list[records.TopicPartitionsInfo]:
    return [
        records.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
        for topic_id, (name, partitions) in topics.items()
    ]

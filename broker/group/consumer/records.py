"""The records of a group of the consumer protocol: what is written, and what it says when it is read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.consumer.member import Assigned, ClassicProtocols, ConsumerMember, MemberState
from barnabas.broker.group.consumer.reconciliation import Target
from barnabas.broker.group.records import record_of
from barnabas.protocol.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartition,
)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    key = ConsumerGroupMetadataKey(group_id=group_id)
    return record_of(key, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _write_classic(member.classic),
    )
    return record_of(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartition(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in target.items()  # their order matters to the assignors
        ]
    )
    return record_of(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return record_of(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_write(member.assigned),
        partitions_pending_revocation=_write(member.revoking),
    )
    return record_of(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def regex_record(group_id: str, regex: str, topics: Iterable[str], version: int, timestamp: int) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp)
    return record_of(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return record_of(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return record_of(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order: what a member has goes before the member."""
    return [
        record_of(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        record_of(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        record_of(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Collection[str], regexes: Collection[str]) -> list[CoordinatorRecord]:
    return [
        *(record for member_id in member_ids for record in member_tombstones(group_id, member_id)),
        record_of(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        record_of(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _write_classic(classic: ClassicProtocols) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols],
    )


def read_classic(found: ClassicMemberMetadata | None) -> ClassicProtocols | None:
    if found is None or not found.supported_protocols:
        return None
    protocols = tuple((each.name, each.metadata) for each in found.supported_protocols)
    return ClassicProtocols(found.session_timeout_ms, protocols)


def _write(assigned: Assigned) -> list[CurrentTopicPartitions]:
    return [
        CurrentTopicPartitions(
            topic_id=topic_id, partitions=sorted(epochs), assignment_epochs=[epochs[index] for index in sorted(epochs)]
        )
        for topic_id, epochs in sorted(assigned.items())
    ]


def read_assigned(partitions: Iterable[CurrentTopicPartitions], member_epoch: int) -> Assigned:
    """Brokers before 4.3 did not write since when a member has each partition: since its epoch, then."""
    return {
        each.topic_id: dict(
            zip(each.partitions, each.assignment_epochs or [member_epoch] * len(each.partitions), strict=False)
        )
        for each in partitions
    }


def read_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN

"""The records of a streams group: what is written, and what it says when it is read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.assignors.sticky_tasks import java_order
from barnabas.broker.group.records import record_of
from barnabas.broker.group.streams.member import MemberState, StreamsMember
from barnabas.broker.group.streams.tasks import AssignedTasks, TaskEpochs, TaskIds, Tasks
from barnabas.broker.group.streams.topology import Topology
from barnabas.protocol.streams_group_records import (
    CurrentTaskIds,
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    TargetTaskIds,
)


def epoch_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)],
    )
    return record_of(StreamsGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    endpoint, tags = member.endpoint, member.client_tags
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=tags[key]) for key in sorted(tags, key=java_order)],
    )
    return record_of(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    return record_of(StreamsGroupTopologyKey(group_id=group_id), topology.value)


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_write_target(target.active),
        standby_tasks=_write_target(target.standby),
        warmup_tasks=_write_target(target.warmup),
    )
    return record_of(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return record_of(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_write_active(member.assigned.active),
        standby_tasks=_write(member.assigned.standby),
        warmup_tasks=_write(member.assigned.warmup),
        active_tasks_pending_revocation=_write_active(member.revoking.active),
        standby_tasks_pending_revocation=_write(member.revoking.standby),
        warmup_tasks_pending_revocation=_write(member.revoking.warmup),
    )
    return record_of(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """In this order: what a member has goes before the member."""
    return [
        record_of(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        record_of(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        record_of(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Collection[str]) -> list[CoordinatorRecord]:
    return [
        *(record for member_id in member_ids for record in member_tombstones(group_id, member_id)),
        record_of(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        record_of(StreamsGroupMetadataKey(group_id=group_id), None),
        record_of(StreamsGroupTopologyKey(group_id=group_id), None),
    ]


def _write_target(tasks: TaskIds) -> list[TargetTaskIds]:
    return [TargetTaskIds(subtopology_id=id, partitions=sorted(tasks[id])) for id in sorted(tasks, key=java_order)]


def _write(tasks: TaskIds) -> list[CurrentTaskIds]:
    return [CurrentTaskIds(subtopology_id=id, partitions=sorted(tasks[id])) for id in sorted(tasks, key=java_order)]


def _write_active(tasks: TaskEpochs) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=id,
            partitions=sorted(tasks[id]),
            assignment_epochs=[tasks[id][index] for index in sorted(tasks[id])],
        )
        for id in sorted(tasks, key=java_order)
    ]


def read_target(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(_read(value.active_tasks), _read(value.standby_tasks), _read(value.warmup_tasks))


def read_assigned(value: StreamsGroupCurrentMemberAssignmentValue) -> AssignedTasks:
    active = _read_active(value.active_tasks, value.member_epoch)
    return AssignedTasks(active, _read(value.standby_tasks), _read(value.warmup_tasks))


def read_revoking(value: StreamsGroupCurrentMemberAssignmentValue) -> AssignedTasks:
    active = _read_active(value.active_tasks_pending_revocation, value.member_epoch)
    standby, warmup = value.standby_tasks_pending_revocation, value.warmup_tasks_pending_revocation
    return AssignedTasks(active, _read(standby), _read(warmup))


def _read(tasks: Iterable[CurrentTaskIds | TargetTaskIds]) -> TaskIds:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks}


def _read_active(tasks: Iterable[CurrentTaskIds], member_epoch: int) -> TaskEpochs:
    """Brokers before 4.3 did not write since when a member has each task: since its epoch, then."""
    found: dict[str, dict[int, int]] = {}
    for each in tasks:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [member_epoch] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def read_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN

"""What each record of a streams group changes in it. A live group and one that is being loaded change the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.group.streams.member import LEAVING_EPOCH, Endpoint, StreamsMember
from barnabas.broker.group.streams.records import read_assigned, read_revoking, read_state, read_target
from barnabas.broker.group.streams.tasks import NOTHING_ASSIGNED
from barnabas.broker.group.streams.topology import topology_of
from barnabas.protocol import streams_group_records as records

# Applies a value to a group; None deletes what the key names.
Apply = Callable[[StreamsGroup, Any, Any], None]


def _epoch(group: StreamsGroup, _: Any, value: records.StreamsGroupMetadataValue | None) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


def _topology(group: StreamsGroup, _: Any, value: records.StreamsGroupTopologyValue | None) -> None:
    group.topology = None if value is None else topology_of(value)


def _member(
    group: StreamsGroup,
    key: records.StreamsGroupMemberMetadataKey,
    value: records.StreamsGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    endpoint = value.user_endpoint
    group.put(
        replace(
            group.members.get(key.member_id) or StreamsMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags={each.key: each.value for each in value.client_tags},
        )
    )


def _target_epoch(group: StreamsGroup, _: Any, value: records.StreamsGroupTargetAssignmentMetadataValue | None) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp


def _target(
    group: StreamsGroup,
    key: records.StreamsGroupTargetAssignmentMemberKey,
    value: records.StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = read_target(value)


def _current(
    group: StreamsGroup,
    key: records.StreamsGroupCurrentMemberAssignmentKey,
    value: records.StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put(
            replace(
                member or StreamsMember(key.member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=read_state(value.state),
                assigned=read_assigned(value),
                revoking=read_revoking(value),
            )
        )
    elif member is not None:
        gone = replace(member, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH)
        group.put(replace(gone, assigned=NOTHING_ASSIGNED, revoking=NOTHING_ASSIGNED))


APPLY: Final[dict[type, Apply]] = {
    records.StreamsGroupMetadataKey: _epoch,
    records.StreamsGroupTopologyKey: _topology,
    records.StreamsGroupMemberMetadataKey: _member,
    records.StreamsGroupTargetAssignmentMetadataKey: _target_epoch,
    records.StreamsGroupTargetAssignmentMemberKey: _target,
    records.StreamsGroupCurrentMemberAssignmentKey: _current,
}

ENDS_GROUP: Final = records.StreamsGroupMetadataKey
"""A tombstone with this key ends a group."""

ENDS_MEMBER: Final = records.StreamsGroupMemberMetadataKey
"""A tombstone with this key says that a member is gone."""

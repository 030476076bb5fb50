"""A classic group from its record."""

from __future__ import annotations

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.member import Member
from barnabas.broker.group.classic.states import GroupState
from barnabas.protocol.group_records import GroupMetadataValue


def load(group_id: str, value: GroupMetadataValue) -> Group:
    group = Group(group_id, value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    for found in {member.member_id: member for member in value.members}.values():
        group.add(
            Member(
                found.member_id,
                group_instance_id=found.group_instance_id,
                client_id=found.client_id,
                client_host=found.client_host,
                # The first version of this record had no rebalance timeout.
                rebalance_timeout_ms=max(found.rebalance_timeout, 0) or found.session_timeout,
                session_timeout_ms=found.session_timeout,
                protocol_type=value.protocol_type,
                protocols=[(value.protocol or "", found.subscription)],
                assignment=found.assignment,
            )
        )
    if value.leader in group.members:
        group.leader_id = value.leader
    if group.members:
        group.state = GroupState.STABLE
    return group

"""A classic group as DescribeGroups shows it."""

from __future__ import annotations

from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.member import Member
from barnabas.broker.group.classic.states import GroupState
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember


def described(group: Group) -> DescribedGroup:
    stable = group.is_in(GroupState.STABLE)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_describe(member, group.protocol if stable else None) for member in group.members.values()],
    )


def _describe(member: Member, protocol: str | None) -> DescribedGroupMember:
    """Only a stable group shows subscriptions: before that, the protocol is not decided."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )

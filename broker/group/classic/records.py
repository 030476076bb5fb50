"""The record of a classic group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator.result import CoordinatorRecord
from barnabas.broker.group.records import record_of
from barnabas.protocol.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from barnabas.broker.group.classic.group import Group

_VALUE_VERSION: Final = 3


def group_metadata_record(group: Group, now_ms: int, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader_id,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return record_of(GroupMetadataKey(group=group.group_id), value, _VALUE_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return record_of(GroupMetadataKey(group=group_id), None)

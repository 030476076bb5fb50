"""DescribeGroups (key 15): groups of the classic protocol, with their members.

A group that does not exist is Dead; from version 6 that is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.group.states import GroupState
from broker.security.operations import GROUP_OPERATIONS, NOT_ASKED
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeGroupsRequest) -> DescribeGroupsResponse:
    operations = GROUP_OPERATIONS if message.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(
        groups=[_describe(broker, request.version, group_id, operations) for group_id in message.groups]
    )


def _describe(broker: Broker, version: int, group_id: str, operations: int) -> DescribedGroup:
    error = broker.groups.objection(group_id)
    described = None if error else broker.groups.shard(group_id).describe(group_id)
    if described is not None:
        described.authorized_operations = operations
        return described
    if not error and version >= 6:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    return DescribedGroup(
        error_code=error,
        error_message=f"Group {group_id} not found." if error == ErrorCode.GROUP_ID_NOT_FOUND else None,
        group_id=group_id,
        group_state="" if error and error != ErrorCode.GROUP_ID_NOT_FOUND else GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=operations if not error else NOT_ASKED,
    )

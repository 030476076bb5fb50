"""DescribeGroups (key 15): groups of the classic protocol, with their members.

A group that does not exist, or is of another kind, is Dead; from version 6 that is an error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.group.classic.describe import described
from barnabas.broker.group.classic.group import Group
from barnabas.broker.group.classic.states import GroupState
from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.security.authorizer import NOT_ASKED
from barnabas.broker.server.pieces import Steps, each, once
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse | None]:
    describe = once(partial(_describe, broker, request, message.include_authorized_operations))
    response = DescribeGroupsResponse(groups=(yield from each(describe, message.groups)))
    again = partial(handle, broker, request, message)
    return when_committed(broker, request, broker.groups, message.groups, response, again)


def _describe(broker: Broker, request: Request, with_operations: bool, group_id: str) -> DescribedGroup:
    access = request.access
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if access.group(AclOperation.DESCRIBE, group_id):
        error = broker.groups.objection(group_id)
    operations = access.operations(ResourceType.GROUP, group_id) if with_operations else NOT_ASKED
    group = None if error else broker.groups.shard(group_id).groups.get(group_id)
    if isinstance(group, Group):
        answer = described(group)
        answer.authorized_operations = operations
        return answer
    if not error and request.version >= 6:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    reason = "not found" if group is None else "is not a classic group"
    return DescribedGroup(
        error_code=error,
        error_message=f"Group {group_id} {reason}." if error == ErrorCode.GROUP_ID_NOT_FOUND else None,
        group_id=group_id,
        group_state="" if error and error != ErrorCode.GROUP_ID_NOT_FOUND else GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=operations if not error else NOT_ASKED,
    )

"""ListGroups (key 16): the groups that this broker coordinates, from version 4 by state and from 5 by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: ListGroupsRequest) -> ListGroupsResponse:
    groups = broker.groups.list_groups()
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups, groups=[])
    states = {state.lower() for state in message.states_filter}
    types = {kind.lower() for kind in message.types_filter}
    return ListGroupsResponse(
        groups=[
            group
            for group in groups
            if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
        ]
    )

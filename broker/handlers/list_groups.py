"""ListGroups (key 16): the groups that this broker coordinates, from version 4 by state and from 5 by type."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.group.kind import listing
from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: ListGroupsRequest) -> Steps[ListGroupsResponse | None]:
    if broker.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=[])
    states = yield from _lower(message.states_filter)
    types = yield from _lower(message.types_filter)
    access = request.access
    all_groups = access.cluster(AclOperation.DESCRIBE)
    groups = []
    for shard in list(broker.groups.shards):
        for group in list(shard.groups.values()):
            listed = listing(group)
            if not all_groups and not access.group(AclOperation.DESCRIBE, listed.group_id):
                continue
            if (not states or listed.group_state.lower() in states) and (not types or listed.group_type in types):
                groups.append(listed)
            yield
    response = ListGroupsResponse(groups=groups)
    return when_committed(broker, request, broker.groups, None, response, partial(handle, broker, request, message))


def _lower(names: list[str]) -> Steps[set[str]]:
    lower = set()
    for name in names:
        lower.add(name.lower())
        yield
    return lower

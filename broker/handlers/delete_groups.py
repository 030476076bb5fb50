"""DeleteGroups (key 42): delete groups that have no members, with their offsets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DeleteGroupsRequest) -> Steps[None]:
    results: list[DeletableGroupResult] = []
    left = 1  # and one more for each group

    def done(result: DeletableGroupResult | None, error: ErrorCode) -> None:
        nonlocal left
        if result is not None:
            result.error_code = error
        left -= 1
        if not left:
            broker.server.dispatcher.answer(request, DeleteGroupsResponse(results=results))

    seen: set[str] = set()
    for group_id in message.groups_names:
        if group_id in seen:
            continue
        seen.add(group_id)
        result = DeletableGroupResult(group_id=group_id)
        results.append(result)
        left += 1
        if request.access.group(AclOperation.DELETE, group_id):
            broker.groups.delete_group(group_id, partial(done, result))
        else:
            done(result, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        yield
    done(None, ErrorCode.NONE)
    return None

"""DeleteGroups (key 42): delete groups that have no members, with their offsets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DeleteGroupsRequest) -> None:
    results = [DeletableGroupResult(group_id=group_id) for group_id in dict.fromkeys(message.groups_names)]
    left = len(results)

    def done(result: DeletableGroupResult, error: ErrorCode) -> None:
        nonlocal left
        result.error_code = error
        left -= 1
        if not left:
            request.answer(DeleteGroupsResponse(results=results))

    if not results:
        request.answer(DeleteGroupsResponse(results=[]))
    for result in results:
        broker.groups.delete_group(result.group_id, partial(done, result))

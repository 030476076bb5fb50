"""LeaveGroup (key 13): one member, or from version 3 several, leave a classic group, by member id or instance id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.settled import when_committed
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_AT_A_TIME: Final = 200


def handle(broker: Broker, request: Request, message: LeaveGroupRequest) -> Steps[LeaveGroupResponse | None]:
    if not request.access.group(AclOperation.READ, message.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answers: list[MemberResponse] = []
    identities = message.members
    for start in range(0, max(len(identities), 1), _AT_A_TIME):
        some = LeaveGroupRequest(
            group_id=message.group_id,
            member_id=message.member_id,
            members=identities[start : start + _AT_A_TIME],
        )
        answer = broker.groups.leave(some, request.version)
        if answer.error_code:
            return answer
        answers += answer.members
        yield
    response = LeaveGroupResponse(members=answers)
    return when_committed(broker, request, broker.groups, [message.group_id], response, _not_coordinator)


def _not_coordinator() -> Steps[LeaveGroupResponse | None]:
    """Only the next coordinator can say whether they have left."""
    yield
    return LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)

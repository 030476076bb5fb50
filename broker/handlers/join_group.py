"""JoinGroup (key 11): join a classic group and wait for its next generation.

Version 1 adds the rebalance timeout; from 4 a new member first gets its id; 5 adds static members; 7 the protocol
type; 8 a reason; 9 lets a static leader that rejoins skip the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.group.classic.responses import join_error
from barnabas.broker.group.client import ClientInfo
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: JoinGroupRequest) -> None:
    client = ClientInfo(request.client_id or "", f"/{request.connection.peer[0]}", request.version)

    def answer(response: JoinGroupResponse) -> None:
        if request.version < 7 and response.protocol_name is None:
            response.protocol_name = ""
        request.answer(response)

    if request.access.group(AclOperation.READ, message.group_id):
        broker.groups.join(message, client, answer)
    else:
        answer(join_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""))

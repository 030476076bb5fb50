"""JoinGroup (key 11): join a classic group and wait for its next generation.

Version 1 adds the rebalance timeout; from 4 a new member first gets its id; 5 brings static members; 7 tells the
protocol's type; 8 takes a reason; 9 lets a static leader that comes back skip the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.group.membership import ClientInfo
from broker.server.request import Request
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: JoinGroupRequest) -> None:
    client = ClientInfo(request.client_id or "", f"/{request.connection.peer[0]}", request.version)

    def answer(response: JoinGroupResponse) -> None:
        if request.version < 7 and response.protocol_name is None:
            response.protocol_name = ""
        request.answer(response)

    broker.groups.join(message, client, answer)

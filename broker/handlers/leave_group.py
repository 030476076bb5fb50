"""LeaveGroup (key 13): members leave a classic group: one, or from version 3 several, by their ids or instance ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: LeaveGroupRequest) -> LeaveGroupResponse:
    return broker.groups.leave(message, request.version)

"""SyncGroup (key 14): hand out and receive the assignment of a generation.

The leader sends it, everybody waits for it. From version 5 a member must say by which protocol it means to be assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.group.answers import sync_error
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: SyncGroupRequest) -> None:
    if request.version >= 5 and (message.protocol_type is None or message.protocol_name is None):
        request.answer(sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    else:
        broker.groups.sync(message, request.answer)

"""SyncGroup (key 14): hand out and receive the assignment of a generation.

The leader sends it, the others wait for it. From version 5 a member names the protocol that it expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.group.classic.responses import sync_error
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: SyncGroupRequest) -> None:
    if not request.access.group(AclOperation.READ, message.group_id):
        request.answer(sync_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    elif request.version >= 5 and (message.protocol_type is None or message.protocol_name is None):
        request.answer(sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    else:
        broker.groups.sync(message, request.answer)

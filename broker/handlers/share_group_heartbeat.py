"""ShareGroupHeartbeat (key 76): join a share group (with epoch 0), stay in it, or leave it (-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.share.requests import heartbeat_error
from barnabas.broker.group.topics import MOST_NAMES, TOO_MANY_NAMES
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_LONGEST_MEMBER_ID: Final = 36  # as long as a UUID in its usual form


def handle(broker: Broker, request: Request, message: ShareGroupHeartbeatRequest) -> None:
    access = request.access
    if not broker.understood.share_version:
        request.answer(heartbeat_error(ErrorCode.UNSUPPORTED_VERSION, "There are brokers without share groups."))
    elif not access.group(AclOperation.READ, message.group_id):
        request.answer(heartbeat_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    elif not 0 < len(message.member_id) <= _LONGEST_MEMBER_ID:
        request.answer(heartbeat_error(ErrorCode.INVALID_REQUEST, "The member's id is empty or too long."))
    elif len(message.subscribed_topic_names or ()) > MOST_NAMES:
        request.answer(heartbeat_error(ErrorCode.INVALID_REQUEST, TOO_MANY_NAMES))
    elif not all(access.topic(AclOperation.DESCRIBE, name) for name in message.subscribed_topic_names or ()):
        request.answer(heartbeat_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    else:
        client = ClientInfo(request.client_id or "", f"/{request.connection.peer[0]}", request.version)
        broker.groups.share_heartbeat(message, client, request.answer)

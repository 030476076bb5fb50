"""ConsumerGroupHeartbeat (key 68): join a group of the consumer protocol, stay in it, or leave it.

The member's epoch says which: 0 joins, -1 leaves, -2 leaves for a while (static members). From version 1 members choose
their own ids, and may subscribe to a regular expression.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.group.client import ClientInfo
from barnabas.broker.group.consumer.group import CONSUMER
from barnabas.broker.group.consumer.requests import heartbeat_error
from barnabas.broker.group.topics import MOST_NAMES, TOO_MANY_NAMES
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_DISABLED: Final = (
    "The consumer protocol is not among group.coordinator.rebalance.protocols, or there are older brokers."
)


def handle(broker: Broker, request: Request, message: ConsumerGroupHeartbeatRequest) -> None:
    access = request.access
    is_known = broker.understood.group_version and CONSUMER in broker.config.group_coordinator_rebalance_protocols
    if not is_known:
        request.answer(heartbeat_error(ErrorCode.UNSUPPORTED_VERSION, _DISABLED))
    elif not access.group(AclOperation.READ, message.group_id):
        request.answer(heartbeat_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    elif len(message.subscribed_topic_names or ()) > MOST_NAMES:
        request.answer(heartbeat_error(ErrorCode.INVALID_REQUEST, TOO_MANY_NAMES))
    elif not all(access.topic(AclOperation.DESCRIBE, name) for name in message.subscribed_topic_names or ()):
        request.answer(heartbeat_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    else:
        client = ClientInfo(request.client_id or "", f"/{request.connection.peer[0]}", request.version)
        may_describe = partial(access.topic, AclOperation.DESCRIBE)
        broker.groups.consumer_heartbeat(message, client, may_describe, request.answer)

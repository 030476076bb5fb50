"""ListConfigResources (key 74): what has settings that can be described.

Version 0 lists subscriptions to client metrics alone; version 1 the kinds that it is asked for, or all. There are no
such subscriptions here, and no groups with settings of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.resources import ResourceType
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker

_ALL: Final = frozenset(ResourceType)


def handle(broker: Broker, request: Request, message: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    wanted = {ResourceType.CLIENT_METRICS} if request.version == 0 else set(message.resource_types) or _ALL
    if not wanted <= _ALL:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    brokers = [str(broker_id) for broker_id in broker.cluster.brokers]
    names = {
        ResourceType.TOPIC: broker.cluster.topics,
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in ResourceType
            if resource_type in wanted
            for name in names.get(resource_type, ())
        ]
    )

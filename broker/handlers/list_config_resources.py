"""ListConfigResources (key 74): the resources that have settings.

Version 0 lists only subscriptions to client metrics; version 1 the requested types, or all. There are no
such subscriptions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.resources import ResourceType
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_ALL: Final = frozenset(ResourceType)


def handle(broker: Broker, request: Request, message: ListConfigResourcesRequest) -> Steps[ListConfigResourcesResponse]:
    wanted = {ResourceType.CLIENT_METRICS} if request.version == 0 else set(message.resource_types) or _ALL
    if not wanted <= _ALL:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    brokers = [str(broker_id) for broker_id in broker.cluster.brokers]
    names = {
        ResourceType.TOPIC: broker.cluster.topics,
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.GROUP: broker.config_follower.configured_groups(),
    }
    resources = [
        (name, resource_type)
        for resource_type in ResourceType
        if resource_type in wanted
        for name in names.get(resource_type, ())
    ]
    return ListConfigResourcesResponse(
        config_resources=(
            yield from each(lambda named: ConfigResource(resource_name=named[0], resource_type=named[1]), resources)
        )
    )

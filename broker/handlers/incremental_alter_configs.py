"""IncrementalAlterConfigs (key 44): set or delete single settings, append to lists or subtract from them.

Both versions have the same fields; version 1 is flexible.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.config import (
    Operation,
    OperationKind,
    alter_broker_config,
    alter_group_config,
    alter_topic_config,
)
from barnabas.broker.config_resources import MOST_SETTINGS, Alteration, Outcome, Resource, alter
from barnabas.broker.server.pieces import each
from barnabas.broker.server.request import Request
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    wanted = await broker.pieces.result(each(partial(alteration, broker), message.resources))
    outcomes = await alter(broker, request.access, wanted, message.validate_only)
    return IncrementalAlterConfigsResponse(responses=await broker.pieces.result(each(_answer, outcomes)))


def alteration(broker: Broker, resource: AlterConfigsResource) -> Alteration:
    named = resource.configs[: MOST_SETTINGS + 1]
    operations = [Operation(config.config_operation, config.name, config.value) for config in named]
    return Alteration(
        Resource(resource.resource_type, resource.resource_name),
        names=[name for _, name, _ in operations],
        without_value=[name for kind, name, value in operations if value is None and kind != OperationKind.DELETE],
        for_topic=lambda present: alter_topic_config(present, operations, broker.config),
        for_broker=lambda present, cluster_wide: alter_broker_config(
            present, operations, broker.config, cluster_wide=cluster_wide
        ),
        for_group=lambda present: alter_group_config(present, operations, broker.config),
    )


def _answer(outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        resource_type=outcome.resource.type,
        resource_name=outcome.resource.name,
    )

"""AlterConfigs (key 33): replace all settings that were set for topics or brokers.

All versions have the same fields; version 2 is flexible. A setting that is not named returns to its default.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.config import replace_broker_config, replace_group_config, replace_topic_config
from barnabas.broker.config_resources import MOST_SETTINGS, Alteration, Outcome, Resource, alter
from barnabas.broker.server.pieces import each
from barnabas.broker.server.request import Request
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle(broker: Broker, request: Request, message: AlterConfigsRequest) -> AlterConfigsResponse:
    wanted = await broker.pieces.result(each(partial(_alteration, broker), message.resources))
    outcomes = await alter(broker, request.access, wanted, message.validate_only)
    return AlterConfigsResponse(responses=await broker.pieces.result(each(_answer, outcomes)))


def _alteration(broker: Broker, resource: AlterConfigsResource) -> Alteration:
    named = resource.configs[: MOST_SETTINGS + 1]
    configs = {config.name: config.value for config in named}
    return Alteration(
        Resource(resource.resource_type, resource.resource_name),
        names=[config.name for config in named],
        without_value=[config.name for config in named if config.value is None],
        for_topic=lambda _: replace_topic_config(configs, broker.config),
        for_broker=lambda _, cluster_wide: replace_broker_config(configs, broker.config, cluster_wide=cluster_wide),
        for_group=lambda _: replace_group_config(configs, broker.config),
    )


def _answer(outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        resource_type=outcome.resource.type,
        resource_name=outcome.resource.name,
    )

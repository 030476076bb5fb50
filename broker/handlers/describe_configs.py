"""DescribeConfigs (key 32): the settings of topics, of this broker, and of all brokers (a broker with an empty name).

Version 1 is the first that is served: it tells where a value comes from, and with include_synonyms what else was said
about it. Version 3 adds the type of a setting, and with include_documentation what it does. Passwords are never told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config import ConfigEntry, InvalidConfigRequestError, TopicConfig
from broker.config.resources import ResourceType, describe_client_metrics, describe_group, describe_loggers
from broker.config_resources import Resource, check_broker_id, check_has_name, check_topic_name, unknown_topic
from broker.controller.decisions import Refused
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(broker, message, resource) for resource in message.resources])


def _describe(broker: Broker, message: DescribeConfigsRequest, asked: DescribeConfigsResource) -> DescribeConfigsResult:
    # No names mean all of them, as in Kafka.
    names = set(asked.configuration_keys or ()) or None
    result = DescribeConfigsResult(
        error_message="", resource_type=asked.resource_type, resource_name=asked.resource_name, configs=[]
    )
    try:
        entries = _entries(broker, Resource(asked.resource_type, asked.resource_name), names)
    except Refused as refusal:
        result.error_code, result.error_message = refusal.error_code, refusal.message
    except InvalidConfigRequestError as error:
        result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, str(error)
    else:
        result.configs = [_answer(entry, message) for entry in entries]
    return result


def _entries(broker: Broker, resource: Resource, names: set[str] | None) -> list[ConfigEntry]:
    match resource.type:
        case ResourceType.TOPIC:
            check_topic_name(resource.name)
            image = broker.cluster.topic(resource.name)
            if image is None:
                raise unknown_topic()
            return TopicConfig(image.configs, broker.config).describe(names)
        case ResourceType.BROKER:
            if not resource.name:
                return broker.config.describe_cluster_wide(names)
            check_broker_id(broker, resource.name)
            return broker.config.describe(names)
        case ResourceType.BROKER_LOGGER:
            check_broker_id(broker, resource.name)
            return describe_loggers(names)
        case ResourceType.CLIENT_METRICS:
            check_has_name(resource)
            return describe_client_metrics(names)
        case ResourceType.GROUP:
            check_has_name(resource)
            return describe_group(broker.config, names)
        case _:
            raise InvalidConfigRequestError(f"There is no resource type {resource.type}.")


def _answer(entry: ConfigEntry, message: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if message.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in synonyms],
        config_type=entry.type,
        documentation=entry.documentation if message.include_documentation else None,
    )

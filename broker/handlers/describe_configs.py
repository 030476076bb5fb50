"""DescribeConfigs (key 32): the settings of topics, of this broker, and of all brokers (a broker with an empty name).

Version 1 is the first that is served: it has the source of a value, and with include_synonyms the overridden
values. Version 3 adds the type of a setting, and with include_documentation its description. Passwords are never sent.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from barnabas.broker.config import ConfigEntry, InvalidConfigRequestError, TopicConfig
from barnabas.broker.config.group_config import describe_group
from barnabas.broker.config.resources import ResourceType, describe_client_metrics, describe_loggers
from barnabas.broker.config_resources import (
    Resource,
    check_access,
    check_broker_id,
    check_has_name,
    check_topic_name,
    unknown_topic,
)
from barnabas.broker.controller.results import Refused
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    described: dict[Hashable, DescribeConfigsResult] = {}
    results = []
    for asked in message.resources:
        names = set()
        for name in asked.configuration_keys or ():
            names.add(name)
            yield
        # All settings of a broker are a long answer to a few bytes, so the same question gets the same object.
        question = (asked.resource_type, asked.resource_name, frozenset(names))
        if question not in described:
            described[question] = _describe(broker, request.access, message, asked, names)
        results.append(described[question])
        yield
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker, access: Access, message: DescribeConfigsRequest, asked: DescribeConfigsResource, names: set[str]
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message="", resource_type=asked.resource_type, resource_name=asked.resource_name, configs=[]
    )
    try:
        resource = Resource(asked.resource_type, asked.resource_name)
        check_access(access, AclOperation.DESCRIBE_CONFIGS, resource)
        entries = _entries(broker, resource, names or None)  # no names mean all of them, as in Kafka
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
            return TopicConfig.stored(image.configs, broker.config).describe(names)
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
            return describe_group(broker.config_follower.group_configs(resource.name), broker.config, names)
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

"""Topics and brokers as requests about settings name them: found, altered, or refused as Kafka refuses them.

What is altered is written to the registry, and takes effect when the cluster's view shows it: before the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.config import InvalidConfigError, InvalidConfigRequestError
from broker.config.resources import LOGGERS, ResourceType
from broker.controller.decisions import Refused, duplicates
from broker.controller.topic_names import problem_with_name
from broker.registry.errors import NoNode
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.broker import Broker


class Resource(NamedTuple):
    """What a request calls a resource: the type may be any number."""

    type: int
    name: str


class Alteration(NamedTuple):
    """What a request wants to become of one resource."""

    resource: Resource
    names: list[str]  # of the settings, as often as they occur
    without_value: list[str]  # of the settings that need a value and have none
    for_topic: Callable[[Mapping[str, str]], Mapping[str, str]]
    for_broker: Callable[[Mapping[str, str], bool], Mapping[str, str]]  # with whether all brokers are meant


class Outcome(NamedTuple):
    resource: Resource
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


async def alter(broker: Broker, alterations: Iterable[Alteration], validate_only: bool) -> list[Outcome]:
    """Alter each resource by itself: one that is refused does not keep the others back."""
    alterations = list(alterations)
    times = Counter(alteration.resource for alteration in alterations)
    outcomes = []
    for alteration in alterations:
        resource = alteration.resource
        try:
            if times[resource] > 1:
                raise InvalidConfigRequestError("Each resource may be named only once.")
            await _alter(broker, alteration, validate_only)
        except Refused as refusal:
            outcomes.append(Outcome(resource, refusal.error_code, refusal.message))
        except InvalidConfigError as error:
            outcomes.append(Outcome(resource, ErrorCode.INVALID_CONFIG, str(error)))
        except InvalidConfigRequestError as error:
            outcomes.append(Outcome(resource, ErrorCode.INVALID_REQUEST, str(error)))
        else:
            outcomes.append(Outcome(resource))
    return outcomes


async def _alter(broker: Broker, alteration: Alteration, validate_only: bool) -> None:
    resource = alteration.resource
    if duplicates(alteration.names):
        raise InvalidConfigRequestError(f"Named twice: {', '.join(duplicates(alteration.names))}")
    if alteration.without_value:
        raise InvalidConfigRequestError(f"No value for {', '.join(alteration.without_value)}")
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                raise InvalidConfigRequestError("There are no settings of all topics.")
            check_topic_name(resource.name)
            await _alter_topic(broker, alteration, validate_only)
        case ResourceType.BROKER:
            cluster_wide = not resource.name
            if not cluster_wide:
                check_broker_id(broker, resource.name)
            await broker.controller.alter_broker_configs(
                None if cluster_wide else broker.config.node_id,
                lambda present: alteration.for_broker(present, cluster_wide),
                validate_only=validate_only,
            )
        case ResourceType.BROKER_LOGGER:
            check_broker_id(broker, resource.name)
            unknown = [name for name in alteration.names if name not in LOGGERS]
            if unknown:
                raise InvalidConfigError(f"There is no logger {unknown[0]}.")
            if alteration.names:
                raise InvalidConfigRequestError("The levels of loggers cannot be altered here.")
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            check_has_name(resource)
            if alteration.names:
                raise InvalidConfigRequestError(f"{ResourceType(resource.type).name} settings cannot be altered here.")
        case _:
            raise InvalidConfigRequestError(f"There is no resource type {resource.type}.")


async def _alter_topic(broker: Broker, alteration: Alteration, validate_only: bool) -> None:
    topic = alteration.resource.name
    if broker.cluster.topic(topic) is None:
        # Settings that cannot be are told first, as Kafka does.
        alteration.for_topic({})
        raise unknown_topic()
    try:
        await broker.controller.alter_topic_configs(topic, alteration.for_topic, validate_only=validate_only)
    except NoNode:
        raise unknown_topic() from None


def unknown_topic() -> Refused:
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic.")


def check_topic_name(name: str) -> None:
    problem = problem_with_name(name)
    if problem:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def check_broker_id(broker: Broker, name: str) -> None:
    """A broker speaks only for itself: clients send what concerns another one there."""
    try:
        broker_id = int(name)
    except ValueError:
        raise InvalidConfigRequestError(f"A broker's id is a number, not {name!r}.") from None
    if broker_id != broker.config.node_id:
        raise InvalidConfigRequestError(f"This is broker {broker.config.node_id}, not {name}.")


def check_has_name(resource: Resource) -> None:
    if not resource.name:
        raise InvalidConfigRequestError(f"{ResourceType(resource.type).name} settings belong to one that has a name.")

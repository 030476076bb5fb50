"""Topics and brokers as the resources of requests about settings: found, altered, or refused as Kafka refuses them.

Any broker alters settings. They are written to the registry, and take effect here before the answer, elsewhere soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.config import InvalidConfigError, InvalidConfigRequestError
from barnabas.broker.config.resources import LOGGERS, ResourceType
from barnabas.broker.controller.results import Refused, duplicates
from barnabas.broker.controller.topic_names import problem_with_name
from barnabas.broker.registry.errors import NoNode, RegistryUnavailable, SessionExpired
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.freeing import LongList
from barnabas.broker.server.pieces import spread
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# No resource has as many. A request that names more is refused before anybody looks at each of them.
MOST_SETTINGS: Final = 1000


class Resource(NamedTuple):
    """A resource as a request names it: the type may be any number."""

    type: int
    name: str


class Alteration(NamedTuple):
    """What a request wants to change in one resource."""

    resource: Resource
    names: list[str]  # of the settings, as often as they occur, and no more than one above MOST_SETTINGS
    without_value: list[str]  # of the settings that need a value and have none
    for_topic: Callable[[Mapping[str, str]], Mapping[str, str]]
    for_broker: Callable[[Mapping[str, str], bool], Mapping[str, str]]  # with a flag for all brokers
    for_group: Callable[[Mapping[str, str]], Mapping[str, str]]


class Outcome(NamedTuple):
    resource: Resource
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


async def alter(
    broker: Broker, access: Access, alterations: Sequence[Alteration], validate_only: bool
) -> list[Outcome]:
    """Alter each resource separately: a refused one does not hold back the others."""
    times: Counter[Resource] = Counter()
    async for alteration in spread(alterations):
        times[alteration.resource] += 1
    outcomes: list[Outcome] = LongList()
    async for alteration in spread(alterations):
        resource = alteration.resource
        try:
            if times[resource] > 1:
                raise InvalidConfigRequestError("Each resource may be named only once.")
            await _alter(broker, access, alteration, validate_only)
        except Refused as refusal:
            outcomes.append(Outcome(resource, refusal.error_code, refusal.message))
        except (RegistryUnavailable, SessionExpired) as failure:
            outcomes.append(Outcome(resource, ErrorCode.KAFKA_STORAGE_ERROR, str(failure)))
        except InvalidConfigError as error:
            outcomes.append(Outcome(resource, ErrorCode.INVALID_CONFIG, str(error)))
        except InvalidConfigRequestError as error:
            outcomes.append(Outcome(resource, ErrorCode.INVALID_REQUEST, str(error)))
        else:
            outcomes.append(Outcome(resource))
    return outcomes


async def _alter(broker: Broker, access: Access, alteration: Alteration, validate_only: bool) -> None:
    resource = alteration.resource
    if len(alteration.names) > MOST_SETTINGS:
        raise InvalidConfigRequestError(f"More than {MOST_SETTINGS} settings of one resource.")
    if duplicates(alteration.names):
        raise InvalidConfigRequestError(f"Named twice: {', '.join(duplicates(alteration.names))}")
    if alteration.without_value:
        raise InvalidConfigRequestError(f"No value for {', '.join(alteration.without_value)}")
    check_access(access, AclOperation.ALTER_CONFIGS, resource)
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
            await broker.config_follower.alter_broker(
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
        case ResourceType.GROUP:
            check_has_name(resource)
            if not broker.understood.group_version:
                raise InvalidConfigRequestError("There are older brokers, which do not know settings of groups.")
            await broker.config_follower.alter_group(resource.name, alteration.for_group, validate_only=validate_only)
        case ResourceType.CLIENT_METRICS:
            check_has_name(resource)
            if alteration.names:
                raise InvalidConfigRequestError("CLIENT_METRICS settings cannot be altered here.")
        case _:
            raise InvalidConfigRequestError(f"There is no resource type {resource.type}.")


async def _alter_topic(broker: Broker, alteration: Alteration, validate_only: bool) -> None:
    topic = alteration.resource.name
    if broker.cluster.topic(topic) is None:
        # Invalid settings are reported first, as in Kafka.
        alteration.for_topic({})
        raise unknown_topic()
    try:
        await broker.config_follower.alter_topic(topic, alteration.for_topic, validate_only=validate_only)
    except NoNode:
        raise unknown_topic() from None


def check_access(access: Access, operation: AclOperation, resource: Resource) -> None:
    """Refuse what the client may not do to the settings of a resource."""
    match resource.type:
        case ResourceType.TOPIC:
            if not access.topic(operation, resource.name):
                raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        case ResourceType.GROUP:
            if not access.group(operation, resource.name):
                raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER | ResourceType.CLIENT_METRICS:
            if not access.cluster(operation):
                raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def unknown_topic() -> Refused:
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic.")


def check_topic_name(name: str) -> None:
    problem = problem_with_name(name)
    if problem:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def check_broker_id(broker: Broker, name: str) -> None:
    """A broker answers only for itself: clients ask other brokers directly."""
    try:
        broker_id = int(name)
    except ValueError:
        raise InvalidConfigRequestError(f"A broker's id is a number, not {name!r}.") from None
    if broker_id != broker.config.node_id:
        raise InvalidConfigRequestError(f"This is broker {broker.config.node_id}, not {name}.")


def check_has_name(resource: Resource) -> None:
    if not resource.name:
        raise InvalidConfigRequestError(f"{ResourceType(resource.type).name} settings belong to one that has a name.")

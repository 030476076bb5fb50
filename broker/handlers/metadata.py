"""Metadata (key 3): the brokers, and topics with the leaders of their partitions.

Version 1 adds the controller and distinguishes "no topics" from "all"; 2 adds the cluster id; 4 lets a client forbid
automatic creation; 7 adds leader epochs; 8 authorized operations; 10 topic ids, and 12 requests by id; 13 an error for
the whole answer.

A topic that is created automatically is ready when the answer goes out, so the client need not ask again.

A client that may not describe a topic is not told whether it exists: the list of all topics leaves it out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.results import MAX_PARTITIONS_PER_REQUEST
from barnabas.broker.controller.topic_names import is_internal, problem_with_name
from barnabas.broker.endpoints import endpoints_for
from barnabas.broker.replica.partition import NO_LEADER
from barnabas.broker.security.authorizer import NOT_ASKED, Access
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_CREATED_AT_A_TIME: Final = 50


class Asked(NamedTuple):
    """The topics that a request names."""

    names: Collection[str]
    ids: Collection[bytes]


def handle(broker: Broker, request: Request, message: MetadataRequest) -> Steps[MetadataResponse | None]:
    asked: Asked | None = None
    if message.topics or (message.topics is not None and request.version > 0):
        asked = yield from _asked_for(request.version, message.topics)
        if asked is None:
            return (yield from _refusal(message.topics))
    missing = yield from _to_create(broker, request, message, asked)
    errors = _not_creatable(request.access, missing)
    missing = [name for name in missing if name not in errors]
    if missing:
        broker.server.dispatcher.run(request, _create_and_answer(broker, request, message, asked, missing, errors))
        return None
    return (yield from _answer(broker, request, message, asked, errors))


async def _create_and_answer(
    broker: Broker,
    request: Request,
    message: MetadataRequest,
    asked: Asked | None,
    missing: list[str],
    errors: dict[str, ErrorCode],
) -> MetadataResponse:
    for start in range(0, len(missing), _CREATED_AT_A_TIME):
        errors.update(await broker.auto_create_topics(missing[start : start + _CREATED_AT_A_TIME]))
    return await broker.pieces.result(_answer(broker, request, message, asked, errors))


def _not_creatable(access: Access, missing: list[str]) -> dict[str, ErrorCode]:
    """Those of the missing topics that the client may not create."""
    if not missing or access.cluster(AclOperation.CREATE):
        return {}
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {name: error for name in missing if not access.topic(AclOperation.CREATE, name)}


def _to_create(broker: Broker, request: Request, message: MetadataRequest, asked: Asked | None) -> Steps[list[str]]:
    """The missing topics, if both the client and the broker allow automatic creation.

    None if they are more than one request may create.
    """
    access = request.access
    missing: list[str] = []
    if asked is None or not broker.config.auto_create_topics_enable:
        return missing
    if request.version >= 4 and not message.allow_auto_topic_creation:
        return missing
    for name in asked.names:
        if broker.cluster.topic(name) is None and access.topic(AclOperation.DESCRIBE, name):
            missing.append(name)
        yield
    return missing if len(missing) <= MAX_PARTITIONS_PER_REQUEST else []


def _asked_for(version: int, topics: list[MetadataRequestTopic]) -> Steps[Asked | None]:
    """The names or ids in a request, once each; None if a topic is invalid, which fails the whole request.

    If there are ids, names are ignored. Versions 10 and 11 have a field for the id but do not accept one.
    """
    names: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    nameless = False
    for topic in topics:
        if topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] = None
        if topic.name is not None:
            names[topic.name] = None
        elif topic.topic_id == ZERO_UUID:
            nameless = True
        yield
    if ids:
        return Asked((), ids) if version >= 12 else None
    return None if nameless else Asked(names, ())


def _refusal(topics: list[MetadataRequestTopic]) -> Steps[MetadataResponse]:
    error = ErrorCode.INVALID_REQUEST
    refused = yield from each(
        lambda topic: MetadataResponseTopic(
            error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=[]
        ),
        topics,
    )
    return MetadataResponse(brokers=[], topics=refused, error_code=error)


def _answer(
    broker: Broker, request: Request, message: MetadataRequest, asked: Asked | None, errors: dict[str, ErrorCode]
) -> Steps[MetadataResponse]:
    access = request.access
    answer = _Answer(broker, access, message.include_topic_authorized_operations, errors)
    topics: list[MetadataResponseTopic] = []
    if asked is None:
        for image in list(broker.cluster.topics.values()):
            if access.topic(AclOperation.DESCRIBE, image.name):
                topics.append(answer.found(image))
            yield
    else:
        for name in asked.names:
            topics.append(answer.by_name(name))
            yield
        for topic_id in asked.ids:
            topics.append(answer.by_id(topic_id))
            yield
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
            for e in endpoints_for(broker, request.connection)
        ],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            access.cluster_operations() if message.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


class _Answer:
    """What the client is told about each topic."""

    def __init__(self, broker: Broker, access: Access, with_operations: bool, errors: dict[str, ErrorCode]) -> None:
        """`errors` are those of topics that could not be created."""
        self._broker = broker
        self._access = access
        self._with_operations = with_operations
        self._errors = errors

    def _operations(self, name: str) -> int:
        return self._access.operations(ResourceType.TOPIC, name) if self._with_operations else NOT_ASKED

    def by_name(self, name: str) -> MetadataResponseTopic:
        if not self._access.topic(AclOperation.DESCRIBE, name):
            return _not_authorized(name, ZERO_UUID)
        image = self._broker.cluster.topic(name)
        if image is not None:
            return self.found(image)
        error = self._errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return _not_authorized(name, ZERO_UUID, is_internal(name))
        return MetadataResponseTopic(
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if problem_with_name(name) else error,
            name=name,
            is_internal=is_internal(name),
            partitions=[],
            topic_authorized_operations=self._operations(name),
        )

    def by_id(self, topic_id: bytes) -> MetadataResponseTopic:
        image = self._broker.cluster.topic_by_id(topic_id)
        if image is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            return MetadataResponseTopic(error_code=error, name=None, topic_id=topic_id, partitions=[])
        if not self._access.topic(AclOperation.DESCRIBE, image.name):
            return _not_authorized(None, topic_id)
        return self.found(image)

    def found(self, image: TopicImage) -> MetadataResponseTopic:
        cluster = self._broker.cluster
        alive = cluster.brokers  # a client does not know the address of any other
        return MetadataResponseTopic(
            name=image.name,
            topic_id=image.topic_id,
            is_internal=image.is_internal,
            partitions=[
                MetadataResponsePartition(
                    error_code=ErrorCode.NONE if partition.leader_id in alive else ErrorCode.LEADER_NOT_AVAILABLE,
                    partition_index=partition.partition_index,
                    leader_id=partition.leader_id if partition.leader_id in alive else NO_LEADER,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=partition.replica_nodes,  # type: ignore[arg-type]
                    isr_nodes=partition.isr_nodes,  # type: ignore[arg-type]
                    offline_replicas=cluster.offline_replicas(partition),
                )
                for partition in image.partitions
            ],
            topic_authorized_operations=self._operations(image.name),
        )


def _not_authorized(name: str | None, topic_id: bytes, internal: bool = False) -> MetadataResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=internal, partitions=[])

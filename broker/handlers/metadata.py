"""Metadata (key 3): the brokers, and topics with the leaders of their partitions.

Version 1 adds the controller and tells "no topics" from "all"; 2 the cluster id; 4 lets a client forbid that the topics
it names are created; 7 leader epochs; 8 authorised operations; 10 topic ids, and 12 asking by them; 13 an error for the
whole answer.

A topic that is created because a client named it is there when the answer goes out, so the client need not ask again.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from broker.controller.images import TopicImage
from broker.controller.topic_names import is_internal, problem_with_name
from broker.endpoints import endpoints_for
from broker.security.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if not _is_valid(request.version, message.topics or []):
        return _refusal(message)
    missing = _to_create(broker, request.version, message)
    if missing:
        return _create_and_answer(broker, request, message, missing)
    return _answer(broker, request, message, {})


async def _create_and_answer(
    broker: Broker, request: Request, message: MetadataRequest, missing: list[str]
) -> MetadataResponse:
    errors = await broker.auto_create_topics(missing)
    return _answer(broker, request, message, errors)


def _is_valid(version: int, topics: list[MetadataRequestTopic]) -> bool:
    """Versions 10 and 11 have a field for the id already, and take no id yet."""
    by_id = any(topic.topic_id != ZERO_UUID for topic in topics)
    if by_id:
        return version >= 12
    return all(topic.name is not None for topic in topics)


def _refusal(message: MetadataRequest) -> MetadataResponse:
    """One topic that is not valid spoils the whole request."""
    error = ErrorCode.INVALID_REQUEST
    topics = [
        MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=[])
        for topic in message.topics or ()
    ]
    return MetadataResponse(brokers=[], topics=topics, error_code=error)


def _to_create(broker: Broker, version: int, message: MetadataRequest) -> list[str]:
    """The topics that do not exist, if both the client and the broker want such topics created."""
    if not message.topics or not broker.config.auto_create_topics_enable:
        return []
    if version >= 4 and not message.allow_auto_topic_creation:
        return []
    names, _ = _names_and_ids(message.topics)
    return [name for name in names if broker.cluster.topic(name) is None]


def _names_and_ids(topics: list[MetadataRequestTopic]) -> tuple[Iterable[str], Iterable[bytes]]:
    """What a request asks for, once each. Beside an id, names count for nothing."""
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    names = dict.fromkeys(topic.name for topic in topics if topic.name is not None)
    return () if ids else names, ids


def _answer(
    broker: Broker, request: Request, message: MetadataRequest, errors: dict[str, ErrorCode]
) -> MetadataResponse:
    operations = TOPIC_OPERATIONS if message.include_topic_authorized_operations else NOT_ASKED
    if message.topics is None or (request.version == 0 and not message.topics):
        topics = [_found(broker, image, operations) for image in broker.cluster.topics.values()]
    else:
        names, ids = _names_and_ids(message.topics)
        topics = [_by_name(broker, name, operations, errors) for name in names]
        topics += [_by_id(broker, topic_id, operations) for topic_id in ids]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
            for e in endpoints_for(broker, request.connection)
        ],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if message.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _by_name(broker: Broker, name: str, operations: int, errors: dict[str, ErrorCode]) -> MetadataResponseTopic:
    image = broker.cluster.topic(name)
    if image is not None:
        return _found(broker, image, operations)
    error = errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if problem_with_name(name) else error,
        name=name,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _by_id(broker: Broker, topic_id: bytes, operations: int) -> MetadataResponseTopic:
    image = broker.cluster.topic_by_id(topic_id)
    if image is not None:
        return _found(broker, image, operations)
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id, partitions=[])


def _found(broker: Broker, image: TopicImage, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=image.name,
        topic_id=image.topic_id,
        is_internal=image.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader_id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replica_nodes,  # type: ignore[arg-type]
                isr_nodes=partition.isr_nodes,  # type: ignore[arg-type]
                offline_replicas=broker.cluster.offline_replicas(partition),
            )
            for partition in image.partitions
        ],
        topic_authorized_operations=operations,
    )

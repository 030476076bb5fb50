"""Metadata (key 3): the brokers, and topics with the leaders of their partitions.

Version 1 adds the controller and tells "no topics" from "all"; 2 the cluster id; 4 lets a client forbid that the topics
it names are created; 7 leader epochs; 8 authorised operations; 10 topic ids, and 12 asking by them; 13 an error for the
whole answer.

A topic that is created because a client named it is there when the answer goes out, so the client need not ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.images import TopicImage
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


def handle(broker: Broker, request: Request, message: MetadataRequest) -> MetadataResponse | None:
    missing = _to_create(broker, request.version, message)
    if missing:
        broker.spawn(_create_and_answer(broker, request, message, missing))
        return None
    return _answer(broker, request, message, {})


async def _create_and_answer(broker: Broker, request: Request, message: MetadataRequest, missing: list[str]) -> None:
    errors = await broker.auto_create_topics(missing)
    request.answer(_answer(broker, request, message, errors))


def _to_create(broker: Broker, version: int, message: MetadataRequest) -> list[str]:
    """The topics that do not exist, if both the client and the broker want such topics created."""
    if not message.topics or not broker.config.auto_create_topics_enable:
        return []
    if version >= 4 and not message.allow_auto_topic_creation:
        return []
    names = {topic.name for topic in message.topics if topic.name is not None}
    return [name for name in names if broker.cluster.topic(name) is None]


def _answer(
    broker: Broker, request: Request, message: MetadataRequest, errors: dict[str, ErrorCode]
) -> MetadataResponse:
    operations = TOPIC_OPERATIONS if message.include_topic_authorized_operations else NOT_ASKED
    if message.topics is None or (request.version == 0 and not message.topics):
        topics = [_found(broker, image, operations) for image in broker.cluster.topics.values()]
    else:
        topics = [_asked_for(broker, request.version, topic, operations, errors) for topic in message.topics]
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


def _asked_for(
    broker: Broker, version: int, topic: MetadataRequestTopic, operations: int, errors: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    by_id = topic.topic_id != ZERO_UUID
    if by_id if version < 12 else not by_id and topic.name is None:
        return _missing(ErrorCode.INVALID_REQUEST, topic.name or "", ZERO_UUID)
    image = broker.cluster.topic_by_id(topic.topic_id) if by_id else broker.cluster.topic(topic.name or "")
    if image is not None:
        return _found(broker, image, operations)
    if by_id:
        return _missing(ErrorCode.UNKNOWN_TOPIC_ID, None, topic.topic_id)
    error = errors.get(topic.name or "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _missing(error, topic.name or "", ZERO_UUID)


def _missing(error: ErrorCode, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=False, partitions=[])


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

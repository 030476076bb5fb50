"""OffsetForLeaderEpoch (key 23): the end of a leader epoch, so that a reader can detect a truncated log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    if message.replica_id >= 0 and request.connection.is_from_broker:
        request.meter = None  # brokers have no quotas
    access = request.access
    is_brokers = access.cluster(AclOperation.CLUSTER_ACTION)
    topics = []
    for topic in message.topics:
        allowed = is_brokers or access.topic(AclOperation.DESCRIBE, topic.topic)
        answer = partial(_answer, broker, topic.topic) if allowed else _not_authorized
        partitions = yield from each(answer, topic.partitions)
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        yield
    return OffsetForLeaderEpochResponse(topics=topics)


def _not_authorized(wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    return EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _answer(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = broker.replicas.find(topic, wanted.partition)
    if partition is None:
        return EpochEndOffset(partition=wanted.partition, error_code=broker.replicas.missing(topic, wanted.partition))
    error = partition.check_leader_epoch(wanted.current_leader_epoch)
    if not error and partition.leadership is None:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error:
        return EpochEndOffset(partition=wanted.partition, error_code=error)
    end = partition.log.leader_epochs.end_offset_for(wanted.leader_epoch, partition.log.end_offset)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.start_offset)

"""OffsetForLeaderEpoch (key 23): where a leader epoch ends, so that a reader can tell whether its log was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(broker, topic.topic, wanted) for wanted in topic.partitions]
            )
            for topic in message.topics
        ]
    )


def _answer(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = broker.replicas.find(topic, wanted.partition)
    if partition is None:
        return EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = partition.check_leader_epoch(wanted.current_leader_epoch)
    if error:
        return EpochEndOffset(partition=wanted.partition, error_code=error)
    end = partition.log.leader_epochs.end_offset_for(wanted.leader_epoch, partition.log.end_offset)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.start_offset)

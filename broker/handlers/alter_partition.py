"""AlterPartition (key 56): leaders ask the controller for other in-sync replicas.

Version 3 comes with the members' broker epochs, so that a follower that restarted meanwhile does not join.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from barnabas.broker.controller.alter_partition import IsrResult, WantedIsr
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionRequest,
    PartitionResponse,
    TopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_UNKNOWN_EPOCH = -1


async def handle(broker: Broker, request: Request | None, message: AlterPartitionRequest) -> AlterPartitionResponse:
    """`request` is None if the controller's own broker asks."""
    term = broker.controller.term
    if term is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    wanted = [
        WantedIsr(topic.topic_id, each.partition_index, each.leader_epoch, each.partition_epoch, _isr(each))
        for topic in message.topics
        for each in topic.partitions
    ]
    error, results = await term.alter_partitions(message.broker_id, message.broker_epoch, wanted)
    return AlterPartitionResponse(
        error_code=error,
        topics=[
            TopicResponse(topic_id=topic_id, partitions=[_answer(result) for result in of_topic])
            for topic_id, of_topic in groupby(results, lambda result: result.topic_id)
        ],
    )


def _isr(partition: PartitionRequest) -> list[tuple[int, int]]:
    if partition.new_isr_with_epochs:
        return [(member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs]
    return [(broker_id, _UNKNOWN_EPOCH) for broker_id in partition.new_isr]


def _answer(result: IsrResult) -> PartitionResponse:
    answer = PartitionResponse(partition_index=result.partition_index, error_code=result.error_code)
    if result.partition is not None:
        answer.leader_id = result.partition.leader_id
        answer.leader_epoch = result.partition.leader_epoch
        answer.isr = list(result.partition.isr_nodes)
        answer.partition_epoch = result.partition.partition_epoch
    return answer

"""AlterPartitionReassignments (key 45): move partitions to other brokers, or call off such moves.

Version 1 can forbid that a move changes how many replicas there are.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from broker.controller.reassignments import Reassignment
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(
    broker: Broker, request: Request, message: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if message.timeout_ms <= 0:
        return _timed_out(message)
    wanted = [
        Reassignment(topic.name, p.partition_index, None if p.replicas is None else tuple(p.replicas))
        for topic in message.topics
        for p in topic.partitions
    ]
    in_order = iter(
        await broker.controller.alter_partition_reassignments(
            wanted, allow_replication_factor_change=message.allow_replication_factor_change
        )
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=message.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=result.partition_index,
                        error_code=result.error_code,
                        error_message=result.error_message,
                    )
                    for result in islice(in_order, len(topic.partitions))
                ],
            )
            for topic in message.topics
        ],
    )


def _timed_out(message: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    error = ErrorCode.REQUEST_TIMED_OUT
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )

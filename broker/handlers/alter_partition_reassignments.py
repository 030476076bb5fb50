"""AlterPartitionReassignments (key 45): move partitions to other brokers, or cancel such moves.

Version 1 can forbid a change of the replication factor.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller.reassignments import Reassignment
from barnabas.broker.controller.results import NOT_CONTROLLER, PartitionResult
from barnabas.broker.server.pieces import Steps, each, parts, spread
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_AT_A_TIME: Final = 200


async def handle(
    broker: Broker, request: Request, message: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    term = broker.controller.term
    if term is None:
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER, responses=[]
        )
    if message.timeout_ms <= 0:
        return await broker.pieces.result(_timed_out(message))
    wanted: list[Reassignment] = []
    async for topic in spread(message.topics):
        wanted += [
            Reassignment(topic.name, p.partition_index, None if p.replicas is None else tuple(p.replicas))
            for p in topic.partitions
        ]
    results: list[PartitionResult] = []
    async for some in spread(parts(wanted, _AT_A_TIME)):
        results += await term.alter_partition_reassignments(
            some, allow_replication_factor_change=message.allow_replication_factor_change
        )
    in_order = iter(results)
    responses = []
    async for topic in spread(message.topics):
        of_topic = list(islice(in_order, len(topic.partitions)))
        partitions = await broker.pieces.result(each(_answer, of_topic))
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=message.allow_replication_factor_change, responses=responses
    )


def _answer(result: PartitionResult) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=result.partition_index, error_code=result.error_code, error_message=result.error_message
    )


def _timed_out(message: AlterPartitionReassignmentsRequest) -> Steps[AlterPartitionReassignmentsResponse]:
    error = ErrorCode.REQUEST_TIMED_OUT
    responses = []
    for topic in message.topics:
        partitions = [
            ReassignablePartitionResponse(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ]
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
        yield
    return AlterPartitionReassignmentsResponse(error_code=error, responses=responses)

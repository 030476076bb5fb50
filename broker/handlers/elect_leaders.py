"""ElectLeaders (key 43): elect the preferred leaders of partitions, or from version 1 any that are alive.

Asked for all partitions, the answer names every topic, but only those partitions that did not have the leader that they
should have. From version 1 there is an error for the whole answer.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from broker.controller import decisions
from broker.controller.elections import ElectionType
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from broker.broker import Broker


async def handle(broker: Broker, request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    asked = message.topic_partitions
    if asked == []:
        return ElectLeadersResponse(replica_election_results=[])
    if message.timeout_ms <= 0:
        return _refusal(message, ErrorCode.REQUEST_TIMED_OUT)
    try:
        election_type = ElectionType(message.election_type)
    except ValueError:
        return _refusal(message, ErrorCode.INVALID_REQUEST, f"There is no election type {message.election_type}.")
    if asked is None:
        by_topic: dict[str, list[decisions.PartitionResult]] = {name: [] for name in broker.cluster.topics}
        for result in await broker.controller.elect_leaders(election_type, None):
            by_topic.setdefault(result.topic, []).append(result)
        topics = list(by_topic.items())
    else:
        partitions = [(topic.topic, index) for topic in asked for index in topic.partitions]
        in_order = iter(await broker.controller.elect_leaders(election_type, partitions))
        topics = [(topic.topic, list(islice(in_order, len(topic.partitions)))) for topic in asked]
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=name, partition_result=[_answer(result) for result in results])
            for name, results in topics
        ]
    )


def _answer(result: decisions.PartitionResult) -> PartitionResult:
    return PartitionResult(
        partition_id=result.partition_index, error_code=result.error_code, error_message=result.error_message
    )


def _refusal(message: ElectLeadersRequest, error: ErrorCode, text: str | None = None) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error, error_message=text)
                    for index in topic.partitions
                ],
            )
            for topic in message.topic_partitions or ()
        ],
    )

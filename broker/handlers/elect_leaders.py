"""ElectLeaders (key 43): elect the preferred leaders of partitions, or from version 1 any live replicas.

For a request about all partitions, the answer names every topic but only the partitions whose leader had to change.
From version 1 there is an error for the whole answer.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.broker.controller import results
from barnabas.broker.controller.elections import ElectionType, all_partitions
from barnabas.broker.server.freeing import LongList
from barnabas.broker.server.pieces import Steps, each, parts, spread
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_AT_A_TIME: Final = 200
# Of all partitions, those that have their leader are not answered, and those of topics that are deleted meanwhile.
_NO_NEWS: Final = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def handle(broker: Broker, request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    asked = message.topic_partitions
    if asked == []:
        return ElectLeadersResponse(replica_election_results=[])
    if message.timeout_ms <= 0:
        return await broker.pieces.result(_refusal(message, ErrorCode.REQUEST_TIMED_OUT))
    try:
        election_type = ElectionType(message.election_type)
    except ValueError:
        text = f"There is no election type {message.election_type}."
        return await broker.pieces.result(_refusal(message, ErrorCode.INVALID_REQUEST, text))
    term = broker.controller.term
    if term is None:
        return ElectLeadersResponse(replica_election_results=await broker.pieces.result(_not_controller(broker, asked)))
    if asked is None:
        by_topic: dict[str, list[results.PartitionResult]] = {name: [] for name in term.cluster.topics}
        async for some in spread(parts(all_partitions(term.cluster), _AT_A_TIME)):
            for result in await term.elect_leaders(election_type, some):
                if result.error_code not in _NO_NEWS:
                    by_topic[result.topic].append(result)
        topics = list(by_topic.items())
    else:
        partitions: list[TopicPartition] = []
        async for topic in spread(asked):
            partitions += [TopicPartition(topic.topic, index) for index in topic.partitions]
        elected: list[results.PartitionResult] = []
        async for some in spread(parts(partitions, _AT_A_TIME)):
            elected += await term.elect_leaders(election_type, some)
        in_order = iter(elected)
        topics = []
        async for topic in spread(asked):
            topics.append((topic.topic, list(islice(in_order, len(topic.partitions)))))
    answers = []
    async for name, found in spread(topics):
        partition_results = await broker.pieces.result(each(_answer, found))
        answers.append(ReplicaElectionResult(topic=name, partition_result=partition_results))
    return ElectLeadersResponse(replica_election_results=answers)


def _not_controller(broker: Broker, asked: list[TopicPartitions] | None) -> Steps[list[ReplicaElectionResult]]:
    """A broker that is not the controller says so for each partition, as in Kafka 3.9."""
    if asked is None:
        named = [(topic.name, range(len(topic.partitions))) for topic in broker.cluster.topics.values()]
    else:
        named = [(topic.topic, topic.partitions) for topic in asked]  # type: ignore[misc]
    answers = []
    for name, indexes in named:
        refused = yield from each(
            lambda index: PartitionResult(partition_id=index, error_code=ErrorCode.NOT_CONTROLLER), indexes
        )
        answers.append(ReplicaElectionResult(topic=name, partition_result=refused))
    return answers


def _answer(result: results.PartitionResult) -> PartitionResult:
    return PartitionResult(
        partition_id=result.partition_index, error_code=result.error_code, error_message=result.error_message
    )


def _refusal(message: ElectLeadersRequest, error: ErrorCode, text: str | None = None) -> Steps[ElectLeadersResponse]:
    answers: list[ReplicaElectionResult] = LongList()
    for topic in message.topic_partitions or ():
        refused = yield from each(
            lambda index: PartitionResult(partition_id=index, error_code=error, error_message=text), topic.partitions
        )
        answers.append(ReplicaElectionResult(topic=topic.topic, partition_result=refused))
    return ElectLeadersResponse(error_code=error, replica_election_results=answers)

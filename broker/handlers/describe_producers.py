"""DescribeProducers (key 61): the producers that a partition remembers, and their open transactions.

Every replica answers for its own log, not only the leader: the client chooses whom it asks (KIP-664).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller.topic_names import problem_with_name
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.pieces import Steps, each, once
from barnabas.broker.server.request import Request
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeProducersRequest) -> Steps[DescribeProducersResponse]:
    topics = []
    for topic in message.topics:
        answer = once(partial(_answer, broker, request.access, topic.name))
        topics.append(TopicResponse(name=topic.name, partitions=(yield from each(answer, topic.partition_indexes))))
        yield
    return DescribeProducersResponse(topics=topics)


def _answer(broker: Broker, access: Access, topic: str, index: int) -> PartitionResponse:
    problem = problem_with_name(topic)
    if problem:
        return _error(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if not access.topic(AclOperation.READ, topic):
        return _error(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    partition = broker.replicas.find(topic, index)
    if partition is None:
        missing = broker.replicas.missing(topic, index)
        if missing == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return _error(index, missing, f"This broker has no replica of {topic}-{index}.")
        return _error(index, missing, f"There is no partition {topic}-{index}.")
    producers = partition.log.producer_state.producers
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=(
                    -1
                    if producer.current_transaction_first_offset is None
                    else producer.current_transaction_first_offset
                ),
            )
            for producer_id, producer in producers.items()
        ],
    )


def _error(index: int, error: ErrorCode, text: str) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error, error_message=text, active_producers=[])

"""DescribeProducers (key 61): the producers that a partition remembers, and their open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.topic_names import problem_with_name
from broker.server.request import Request
from protocol.errors import ErrorCode
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_answer(broker, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in message.topics
        ]
    )


def _answer(broker: Broker, topic: str, index: int) -> PartitionResponse:
    problem = problem_with_name(topic)
    if problem:
        return _error(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
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

"""WriteTxnMarkers (key 27): end transactions in partitions.

Sent by a transaction's coordinator to the leaders of its partitions, and by an administrator who aborts a transaction
that its coordinator has forgotten (kafka-transactions --abort). Version 2 says which rules apply to a marker's epoch.
The answer comes when all markers are committed. A partition that is not led here is NOT_LEADER_OR_FOLLOWER.

Kafka even writes a marker into __transaction_state if told to, and does not load what follows it after the next start.
No transaction can write to that topic, so it is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.internal_topics import TRANSACTION_STATE
from barnabas.broker.server.pieces import Steps, each
from barnabas.broker.server.request import Request
from barnabas.broker.transaction.markers import Marker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(broker: Broker, request: Request, message: WriteTxnMarkersRequest) -> Steps[None]:
    results: list[dict[TopicPartition, ErrorCode]] = [{} for _ in message.markers]
    left = 1  # and one more for each marker

    def done(place: int, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        results[place].update(errors)
        one_is_done()

    def one_is_done() -> None:
        nonlocal left
        left -= 1
        if not left:
            broker.server.dispatcher.go_on(request, _answer(message, results))

    for place, marker in enumerate(message.markers):
        known = []
        for topic in marker.topics:
            for index in topic.partition_indexes:
                partition = TopicPartition(topic.name, index)
                if topic.name == TRANSACTION_STATE:
                    results[place][partition] = ErrorCode.INVALID_TOPIC_EXCEPTION
                elif broker.replicas.find(topic.name, index) is None:
                    results[place][partition] = broker.replicas.missing(topic.name, index)
                else:
                    known.append(partition)
                yield
        left += 1
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            done(place, dict.fromkeys(known, ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            broker.transaction_markers.write(
                Marker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.coordinator_epoch,
                    marker.transaction_result,
                    known,
                    marker.transaction_version,
                ),
                partial(done, place),
            )
        yield
    one_is_done()
    return None


def _answer(
    message: WriteTxnMarkersRequest, results: Sequence[Mapping[TopicPartition, ErrorCode]]
) -> Steps[WriteTxnMarkersResponse]:
    markers = []
    for marker, errors in zip(message.markers, results, strict=True):
        topics = yield from each(partial(_topic_result, errors), marker.topics)
        markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        yield
    return WriteTxnMarkersResponse(markers=markers)


def _topic_result(
    errors: Mapping[TopicPartition, ErrorCode], topic: WritableTxnMarkerTopic
) -> WritableTxnMarkerTopicResult:
    return WritableTxnMarkerTopicResult(
        name=topic.name,
        partitions=[
            WritableTxnMarkerPartitionResult(
                partition_index=index, error_code=errors[TopicPartition(topic.name, index)]
            )
            for index in topic.partition_indexes
        ],
    )

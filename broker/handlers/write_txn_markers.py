"""WriteTxnMarkers (key 27): end transactions in partitions.

Sent by a transaction's coordinator to the leaders of its partitions, and by an administrator who aborts a transaction
that its coordinator has forgotten (kafka-transactions --abort). Version 2 tells by which rules a marker's epoch counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from broker.server.request import Request
from broker.transaction.markers import Marker
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: WriteTxnMarkersRequest) -> None:
    results: dict[int, Mapping[tuple[str, int], ErrorCode]] = {}

    def done(place: int, errors: Mapping[tuple[str, int], ErrorCode]) -> None:
        results[place] = errors
        if len(results) == len(message.markers):
            markers = [_result(marker, results[place]) for place, marker in enumerate(message.markers)]
            request.answer(WriteTxnMarkersResponse(markers=markers))

    if not message.markers:
        request.answer(WriteTxnMarkersResponse(markers=[]))
    for place, marker in enumerate(message.markers):
        partitions = [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
        known = [name for name in partitions if broker.replicas.find(*name) is not None]
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            done(place, dict.fromkeys(known, ErrorCode.UNKNOWN_SERVER_ERROR))
            continue
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


def _result(marker: WritableTxnMarker, errors: Mapping[tuple[str, int], ErrorCode]) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=errors.get((topic.name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )

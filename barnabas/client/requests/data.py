"""Requests that write and find records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.client.requests.topics import TIMEOUT_MS, Topic, by_topic, topic_field
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3

ACKS_ALL: Final = -1
CONSUMER: Final = -1
"""The replica id of clients."""


def produce(
    *parts: tuple[Topic, int, bytes | bytearray | None],
    acks: int = ACKS_ALL,
    timeout_ms: int = TIMEOUT_MS,
    **fields: Any,
) -> ProduceRequest:
    """Produce records to (topic, partition, records)."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                **topic_field("name", topic),
                partition_data=[PartitionProduceData(index=index, records=records) for _, index, records in group],
            )
            for topic, group in by_topic(parts)
        ],
        **fields,
    )


def fetch(
    *parts: tuple[Topic, int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1 << 20,
    partition_fields: Mapping[str, Any] | None = None,
    **fields: Any,
) -> FetchRequest:
    """Fetch from each (topic, partition, offset). `partition_fields` are further fields of each partition."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchTopic(
                **topic_field("topic", topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        **(partition_fields or {}),
                    )
                    for _, index, offset in group
                ],
            )
            for topic, group in by_topic(parts)
        ],
        **fields,
    )


def list_offsets(
    *parts: tuple[str, int, int], current_leader_epoch: int = -1, timeout_ms: int = TIMEOUT_MS, **fields: Any
) -> ListOffsetsRequest:
    """Ask for the offset in (topic, partition) at a timestamp, or at LATEST, EARLIEST, MAX_TIMESTAMP."""
    return ListOffsetsRequest(
        **{"replica_id": CONSUMER, **fields},
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=current_leader_epoch
                    )
                    for _, index, timestamp in group
                ],
            )
            for topic, group in by_topic(parts)
        ],
        timeout_ms=timeout_ms,
    )


def offset_for_leader_epoch(
    *parts: tuple[str, int, int], current_leader_epoch: int = -1, **fields: Any
) -> OffsetForLeaderEpochRequest:
    """Ask where the leader epoch of (topic, partition, leader epoch) ends."""
    return OffsetForLeaderEpochRequest(
        **{"replica_id": CONSUMER, **fields},
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=current_leader_epoch, leader_epoch=leader_epoch
                    )
                    for _, index, leader_epoch in group
                ],
            )
            for topic, group in by_topic(parts)
        ],
    )

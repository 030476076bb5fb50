"""Requests that write and read records, in one line each."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import seal
from protocol.records.builder import NewRecord, build_batch
from protocol.schema import ZERO_UUID

LATEST = -1
EARLIEST = -2

# A topic goes by its name (a str) or by its id (bytes).
Topic = str | bytes


def batch(*values: bytes, timestamp: int = 1_000_000, key: bytes | None = b"key", **fields: Any) -> bytes:
    """A batch as a producer sends it, one record for each value."""
    return bytes(build_batch([NewRecord(timestamp, key, value) for value in values or (b"value",)], **fields))


def patched(data: bytes, position: int, layout: str, value: int, *, sealed: bool = True) -> bytes:
    """A batch with another value in its header; its checksum fits, unless it is not to be `sealed`."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    if sealed:
        seal(memoryview(changed))
    return bytes(changed)


def produce(
    *parts: tuple[Topic, int, bytes | None], acks: int = -1, timeout_ms: int = 20_000, **fields: Any
) -> ProduceRequest:
    """Produce records to (topic, partition)."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                **named("name", topic),
                partition_data=[PartitionProduceData(index=index, records=data) for _, index, data in group],
            )
            for topic, group in _by_topic(parts)
        ],
        **fields,
    )


def fetch(
    *parts: tuple[Topic, int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1_048_576,
    partition: dict[str, Any] | None = None,
    **fields: Any,
) -> FetchRequest:
    """Fetch from (topic, partition, offset); `partition` has further fields for each of them."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchTopic(
                **named("topic", topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        **(partition or {}),
                    )
                    for _, index, offset in group
                ],
            )
            for topic, group in _by_topic(parts)
        ],
        **fields,
    )


def list_offsets(*parts: tuple[str, int, int], current_leader_epoch: int = -1, **fields: Any) -> ListOffsetsRequest:
    """Ask for the offset in (topic, partition) at a timestamp, or one of the special ones."""
    return ListOffsetsRequest(
        replica_id=-1,
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
            for topic, group in _by_topic(parts)
        ],
        **fields,
    )


def _by_topic(parts: Iterable[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
    return groupby(parts, key=lambda part: part[0])


def named(field: str, topic: Topic) -> dict[str, Any]:
    """The field of a request that names a topic."""
    return {field: topic} if isinstance(topic, str) else {"topic_id": topic or ZERO_UUID}

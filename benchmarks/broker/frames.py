"""Requests built once, before the clock starts, so that sending them costs the load client next to nothing."""

from __future__ import annotations

import random
import struct
import time
from typing import Final

from protocol.api import ApiKey
from protocol.encoder import encode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.records.builder import NewRecord, build_batch
from tests.support.wire import framed, request_frame

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
ACKS_ALL: Final = -1


def values(size: int, count: int = 1000) -> list[bytes]:
    """Different values of one size that compress about as real ones do: half of each is chance, the rest is not."""
    chance = random.Random(size)
    same = bytes(size - size // 2)
    return [chance.randbytes(size // 2) + same for _ in range(count)]


def batch(value: bytes, count: int = 1) -> bytes:
    now_ms = int(time.time() * 1000)
    return bytes(build_batch([NewRecord(now_ms, None, value)] * count))


def batch_of_size(size: int) -> bytes:
    """A batch of one record that is exactly so large."""
    overhead = len(batch(bytes(size))) - size
    return batch(bytes(size - overhead))


def produce(topic: str, records: bytes, correlation_id: int = 0) -> bytes:
    """A Produce to partition 0 that is answered when every replica in sync has it."""
    partitions = [PartitionProduceData(index=0, records=records)]
    message = ProduceRequest(
        acks=ACKS_ALL, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=partitions)]
    )
    return request_frame(ApiKey.PRODUCE, message, PRODUCE_VERSION, correlation_id)


def produce_answer(topic: str) -> bytes:
    """What a broker answers to such a Produce, as far as its size goes."""
    partitions = [PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)]
    answer = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=partitions)])
    return framed(struct.pack(">ib", 0, 0) + encode(answer, PRODUCE_VERSION))


def fetch(topic: str, offset: int, max_bytes: int, max_wait_ms: int = 500) -> bytes:
    """A Fetch from partition 0 without a session, answered as soon as there is a byte to read."""
    partitions = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)]
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=partitions)],
    )
    return request_frame(ApiKey.FETCH, message, FETCH_VERSION)

"""Requests built once, before the clock starts, so that sending them costs the load client next to nothing."""

from __future__ import annotations

import random
import struct
import time
from typing import Final

from barnabas.client.requests import data
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed, request_frame
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.records.builder import NewRecord, build_batch

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12


def values(size: int, count: int = 1000) -> list[bytes]:
    """Different values of one size that compress about as well as real ones: half of each is random."""
    chance = random.Random(size)
    same = bytes(size - size // 2)
    return [chance.randbytes(size // 2) + same for _ in range(count)]


def batch(value: bytes, count: int = 1) -> bytes:
    now_ms = int(time.time() * 1000)
    return bytes(build_batch([NewRecord(now_ms, None, value)] * count))


def batch_of_size(size: int) -> bytes:
    """A batch of one record with exactly this size."""
    overhead = len(batch(bytes(size))) - size
    return batch(bytes(size - overhead))


def produce(topic: str, records: bytes, correlation_id: int = 0) -> bytes:
    """A Produce to partition 0 with acks=all."""
    message = data.produce((topic, 0, records), timeout_ms=30_000)
    return request_frame(ApiKey.PRODUCE, message, PRODUCE_VERSION, correlation_id)


def produce_answer(topic: str) -> bytes:
    """A response of the same size as a broker's to such a Produce."""
    partitions = [PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)]
    answer = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=partitions)])
    return framed(struct.pack(">ib", 0, 0) + encode(answer, PRODUCE_VERSION))


def fetch(topic: str, offset: int, max_bytes: int, max_wait_ms: int = 500) -> bytes:
    """A Fetch from partition 0 without a session, answered as soon as there is a byte to read."""
    message = data.fetch(
        (topic, 0, offset), max_wait_ms=max_wait_ms, max_bytes=max_bytes, partition_max_bytes=max_bytes
    )
    return request_frame(ApiKey.FETCH, message, FETCH_VERSION)

"""Load by librdkafka, through confluent-kafka, with its own settings but for what a line asks."""

from __future__ import annotations

import time
from itertools import cycle, islice
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from benchmarks.broker.frames import values

TIMEOUT = 60.0


class Moved(NamedTuple):
    """Messages that were written or read, the first one, which waits for the connection, left out."""

    per_second: float
    messages: int
    client_busy: float


def produce(bootstrap: str, topic: str, size: int, count: int, compression: str = "none") -> Moved:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "compression.type": compression,
            "queue.buffering.max.messages": count + 1,
            "queue.buffering.max.kbytes": 2 * 1024 * 1024,
        }
    )
    different = values(size)
    send = producer.produce
    send(topic, different[0])
    _flush(producer)
    began, began_cpu = time.perf_counter(), time.process_time()
    for value in islice(cycle(different), count):
        send(topic, value)
    _flush(producer)
    elapsed = time.perf_counter() - began
    return Moved(count / elapsed, count + 1, (time.process_time() - began_cpu) / elapsed)


def consume(bootstrap: str, topic: str, count: int) -> Moved:
    """Read `count` messages after the first. The topic must have so many."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        last = _last(consumer.consume(1, TIMEOUT))
        began, began_cpu = time.perf_counter(), time.process_time()
        while last < count:
            last = _last(consumer.consume(min(10_000, count - last), TIMEOUT))
        elapsed = time.perf_counter() - began
        return Moved(count / elapsed, count + 1, (time.process_time() - began_cpu) / elapsed)
    finally:
        consumer.close()


def _flush(producer: Producer) -> None:
    left = producer.flush(TIMEOUT)
    if left:
        raise TimeoutError(f"{left} messages were not delivered")


def _last(messages: list[Message]) -> int:
    """The offset of the last of them, which is all that is looked at."""
    if not messages:
        raise TimeoutError("no message arrived")
    offset = messages[-1].offset()
    if offset is None:
        raise KafkaException(messages[-1].error())
    return offset

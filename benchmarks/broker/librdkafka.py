"""Load from librdkafka with its default settings, except for what a line needs.

This uses confluent-kafka's copy of the library through ctypes, a thousand messages at a time. One Python call per
message, as in confluent-kafka, costs more than the broker and would be all that is measured.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Final, NamedTuple

from confluent_kafka import cimpl

from benchmarks.broker import pages
from benchmarks.broker.frames import values

TIMEOUT_MS: Final = 60_000
AT_ONCE: Final = 1000

_PRODUCER, _CONSUMER = 0, 1
_COPY_PAYLOAD: Final = 2
_FIRST_PARTITION: Final = 0


class _Message(ctypes.Structure):
    """librdkafka's rd_kafka_message_t."""

    _fields_ = (
        ("err", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("len", c_size_t),
        ("key", c_void_p),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


def _function(name: str, result: type | None, *arguments: type) -> ctypes._NamedFuncPointer:
    function: ctypes._NamedFuncPointer = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    return function


_library = ctypes.CDLL(cimpl.__file__)  # its linked libraries are found through it
_conf_new = _function("rd_kafka_conf_new", c_void_p)
_conf_set = _function("rd_kafka_conf_set", c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)
_new = _function("rd_kafka_new", c_void_p, c_int, c_void_p, c_char_p, c_size_t)
_destroy = _function("rd_kafka_destroy", None, c_void_p)
_topic_new = _function("rd_kafka_topic_new", c_void_p, c_void_p, c_char_p, c_void_p)
_topic_destroy = _function("rd_kafka_topic_destroy", None, c_void_p)
_produce_batch = _function("rd_kafka_produce_batch", c_int, c_void_p, c_int32, c_int, POINTER(_Message), c_int)
_flush = _function("rd_kafka_flush", c_int, c_void_p, c_int)
_consume_start = _function("rd_kafka_consume_start", c_int, c_void_p, c_int32, c_int64)
_consume_batch = _function(
    "rd_kafka_consume_batch", c_size_t, c_void_p, c_int32, c_int, POINTER(POINTER(_Message)), c_size_t
)
_consume_stop = _function("rd_kafka_consume_stop", c_int, c_void_p, c_int32)
_message_destroy = _function("rd_kafka_message_destroy", None, POINTER(_Message))


class LibrdkafkaError(Exception):
    """An error from librdkafka."""


class Moved(NamedTuple):
    """Messages written or read. The rate leaves out the first ones, which wait for the connection."""

    per_second: float
    messages: int
    client_busy: float


def produce(
    bootstrap: str,
    topic: str,
    size: int,
    count: int,
    compression: str = "none",
    partitions: int = 1,
    security: Mapping[str, str] | None = None,
    copies: int = 1,
) -> Moved:
    """Write one message to each partition and then `count` more, which is rounded down to whole thousands.

    The brokers keep so many copies of each.
    """
    pages.make_ready(size * count * (copies + 1))  # the client has one more
    settings = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "compression.type": compression,
        "queue.buffering.max.messages": str(count + partitions),
        "queue.buffering.max.kbytes": str(2**31 // 1024 - 1),
        **(security or {}),
    }
    rounds = count // AT_ONCE
    payloads = [ctypes.create_string_buffer(value, size) for value in values(size, AT_ONCE)]
    messages = (_Message * AT_ONCE)(*(_Message(payload=ctypes.addressof(each), len=size) for each in payloads))
    with _client(_PRODUCER, settings) as producer, _topic(producer, topic) as target:
        for partition in range(partitions):
            _send(target, partition, messages, 1)
        _wait_for_delivery(producer)
        began, began_cpu = time.perf_counter(), time.process_time()
        for number in range(rounds):
            _send(target, number % partitions, messages, AT_ONCE)
        _wait_for_delivery(producer)
        elapsed = time.perf_counter() - began
        busy = (time.process_time() - began_cpu) / elapsed
    return Moved(rounds * AT_ONCE / elapsed, rounds * AT_ONCE + partitions, busy)


def consume(bootstrap: str, topic: str, count: int, security: Mapping[str, str] | None = None) -> Moved:
    """Read the first message and then at least `count` more. The topic must have that many."""
    with (
        _client(_CONSUMER, {"bootstrap.servers": bootstrap, **(security or {})}) as consumer,
        _topic(consumer, topic) as source,
    ):
        if _consume_start(source, _FIRST_PARTITION, 0):
            raise LibrdkafkaError("the consumer did not start")
        batch = (POINTER(_Message) * AT_ONCE)()
        last = _receive(source, batch, 1)
        began, began_cpu = time.perf_counter(), time.process_time()
        while last < count:
            last = _receive(source, batch, AT_ONCE)
        elapsed = time.perf_counter() - began
        busy = (time.process_time() - began_cpu) / elapsed
        _consume_stop(source, _FIRST_PARTITION)
    return Moved(last / elapsed, last + 1, busy)


@contextmanager
def _client(kind: int, settings: Mapping[str, str]) -> Iterator[int]:
    said = ctypes.create_string_buffer(512)
    configuration = _conf_new()
    for name, value in settings.items():
        if _conf_set(configuration, name.encode(), value.encode(), said, len(said)):
            raise LibrdkafkaError(said.value.decode())
    client = _new(kind, configuration, said, len(said))
    if not client:
        raise LibrdkafkaError(said.value.decode())
    try:
        yield client
    finally:
        _destroy(client)


@contextmanager
def _topic(client: int, name: str) -> Iterator[int]:
    topic = _topic_new(client, name.encode(), None)
    try:
        yield topic
    finally:
        _topic_destroy(topic)


def _send(topic: int, partition: int, messages: ctypes.Array[_Message], count: int) -> None:
    queued = _produce_batch(topic, partition, _COPY_PAYLOAD, messages, count)
    if queued != count:
        raise LibrdkafkaError(f"{count - queued} messages of {count} were refused")


def _wait_for_delivery(producer: int) -> None:
    if _flush(producer, TIMEOUT_MS):
        raise LibrdkafkaError("messages were not delivered in time")


def _receive(topic: int, batch: ctypes.Array[ctypes._Pointer[_Message]], at_most: int) -> int:
    """Receive some messages and return the offset of the last one. Nothing else is checked."""
    received = _consume_batch(topic, _FIRST_PARTITION, TIMEOUT_MS, batch, at_most)
    if not received:
        raise LibrdkafkaError("no message arrived in time")
    last = batch[received - 1].contents
    error: int = last.err
    offset: int = last.offset
    for message in batch[:received]:
        _message_destroy(message)
    if error:
        raise LibrdkafkaError(f"received an error instead of a message: {error}")
    return offset

"""What idempotence costs: the same small requests with and without producer id and sequences, in turn.

All requests of a turn are built before its clock starts, so that the client does the same work in both. Each turn is
compared with the turn of the other kind right before or after it.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from statistics import median
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import (
    BASE_SEQUENCE_POSITION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_EPOCH_POSITION,
    PRODUCER_ID_POSITION,
    seal,
)
from benchmarks.broker import frames
from benchmarks.broker.small_requests import TIMEOUT, connect, first_answer
from benchmarks.broker.transactions import init_producer_id

CONNECTIONS: Final = 16
IN_FLIGHT: Final = 5  # what a broker remembers of a producer


class Compared(NamedTuple):
    idempotent: float  # requests per second
    share: float  # as a share of the plain ones' rate
    requests: int
    client_busy: float


def compare(port: int, topic: str, value: bytes, requests: int, pairs: int) -> Compared:
    """Send this many requests on each connection, `pairs` times for each of the two kinds."""
    producers = [_Producer(port, topic, value) for _ in range(CONNECTIONS)]
    rates: list[float] = []
    shares: list[float] = []
    busy: list[float] = []
    try:
        for number in range(pairs):
            taken = {}
            for idempotent in (True, False) if number % 2 else (False, True):
                load = _Load({each.socket.fileno(): each for each in producers})
                for each in producers:
                    each.build(requests, idempotent)
                taken[idempotent] = load.run()
                busy.append(load.client_busy)
            rates.append(CONNECTIONS * requests / taken[True])
            shares.append(taken[False] / taken[True])
    finally:
        for each in producers:
            each.socket.close()
    sent = CONNECTIONS * (requests * 2 * pairs + 1)
    return Compared(median(rates), median(shares), sent, median(busy))


class _Producer:
    """One connection with its own producer id."""

    def __init__(self, port: int, topic: str, value: bytes) -> None:
        self._producer = init_producer_id(port)
        self._sequence = 0
        batch = frames.batch(value)
        self._request = frames.produce(topic, batch)
        self._batch_at = self._request.find(batch)
        self._batch_size = len(batch)
        self.size = len(self._request)
        self.socket: socket.socket = connect(port)
        self.answer_size = first_answer(self.socket, self._request)
        self.requests = memoryview(b"")
        self.sent = self.received = 0

    def build(self, count: int, idempotent: bool) -> None:
        built = bytearray(self._request * count)
        view = memoryview(built)
        producer_id, producer_epoch = self._producer if idempotent else (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        for number in range(count):
            start = number * self.size + self._batch_at
            batch = view[start : start + self._batch_size]
            struct.pack_into(">q", batch, PRODUCER_ID_POSITION, producer_id)
            struct.pack_into(">h", batch, PRODUCER_EPOCH_POSITION, producer_epoch)
            struct.pack_into(">i", batch, BASE_SEQUENCE_POSITION, self._sequence if idempotent else NO_SEQUENCE)
            seal(batch)
            self._sequence += idempotent
        self.requests = view
        self.sent = self.received = 0

    def send(self, count: int) -> None:
        part = self.requests[self.sent : self.sent + count * self.size]
        if self.socket.send(part) < len(part):
            raise ConnectionError("the broker does not read its requests")
        self.sent += len(part)


class _Load:
    def __init__(self, producers: dict[int, _Producer]) -> None:
        self._producers = producers
        self.client_busy = 0.0

    def run(self) -> float:
        """The seconds until every request has its response."""
        with select.epoll() as poll:
            began, began_cpu = time.perf_counter(), time.process_time()
            for number, producer in self._producers.items():
                poll.register(number, select.EPOLLIN)
                producer.send(IN_FLIGHT)
            under_way = len(self._producers)
            while under_way:
                ready = poll.poll(TIMEOUT)
                if not ready:
                    raise TimeoutError("the broker does not answer")
                for number, _ in ready:
                    under_way -= self._receive(self._producers[number])
            elapsed = time.perf_counter() - began
            self.client_busy = (time.process_time() - began_cpu) / elapsed
            return elapsed

    def _receive(self, producer: _Producer) -> bool:
        """Read responses, send as many new requests, and return whether that was the last response."""
        received = len(producer.socket.recv(65536))
        if not received:
            raise ConnectionError("the broker closed a connection")
        before = producer.received // producer.answer_size
        producer.received += received
        answers = producer.received // producer.answer_size
        if answers > before and producer.sent < len(producer.requests):
            producer.send(answers - before)
        return producer.received == len(producer.requests) // producer.size * producer.answer_size

"""Load of small requests: one at a time on one connection, or several in flight on each of many connections.

The client does as little as possible. Requests are prebuilt, and responses are counted by their length and not parsed.
The end offset of the log shows afterwards that all of them succeeded.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import NamedTuple

TIMEOUT = 30.0


class Latencies(NamedTuple):
    """Seconds for each request."""

    seconds: list[float]
    answers: int


class Throughput(NamedTuple):
    per_second: float
    answers: int
    client_busy: float  # the share of time that the load client was busy


def one_at_a_time(port: int, request: bytes, seconds: float) -> Latencies:
    with connect(port) as connection:
        answer_size = first_answer(connection, request)
        answers = 1
        taken: list[float] = []
        buffer = bytearray(answer_size)
        clock = time.perf_counter
        deadline = clock() + seconds
        end = clock()
        while end < deadline:
            start = clock()
            connection.sendall(request)
            received = connection.recv_into(buffer)
            while received < answer_size:
                received += len(connection.recv(answer_size - received))
            end = clock()
            taken.append(end - start)
        return Latencies(taken, answers + len(taken))


def many_at_once(port: int, request: bytes, connections: int, in_flight: int, seconds: float) -> Throughput:
    """Every connection keeps `in_flight` requests in flight and sends one more for each response."""
    sockets: dict[int, socket.socket] = {}
    answer_size = 0
    try:
        for _ in range(connections):  # one after another, because Kafka's accept queue is short
            connection = connect(port)
            sockets[connection.fileno()] = connection
            answer_size = first_answer(connection, request)
        load = Load(sockets, request, answer_size, in_flight)
        load.run(seconds)
        load.drain()
        return Throughput(load.per_second, load.answers + connections, load.client_busy)
    finally:
        for each in sockets.values():
            each.close()


class Load:
    """Open connections, and requests on them for as long as one wants, more than once if need be."""

    def __init__(self, sockets: dict[int, socket.socket], request: bytes, answer_size: int, in_flight: int) -> None:
        self._sockets = sockets
        self._size = len(request)
        self._answer_size = answer_size
        self._in_flight = in_flight
        # Requests with correlation ids 0, 1, ... in_flight - 1, twice over: any run of up to in_flight is a slice.
        ring = b"".join(with_correlation_id(request, number) for number in range(in_flight)) * 2
        self._ring = memoryview(ring)
        self._next = dict.fromkeys(sockets, 0)
        self._partial = dict.fromkeys(sockets, 0)  # bytes of a partial response
        self.answers = 0
        self.per_second = 0.0
        self.client_busy = 0.0

    def run(self, seconds: float) -> None:
        with select.epoll() as poll:
            for number in self._sockets:
                poll.register(number, select.EPOLLIN)
            clock = time.perf_counter
            began, began_cpu = clock(), time.process_time()
            for number in self._sockets:
                self._send(number, self._in_flight)
            while clock() < began + seconds:
                for number, _ in poll.poll(TIMEOUT):
                    answers = self._receive(number)
                    if answers:
                        self._send(number, answers)
            elapsed = clock() - began
            self.per_second = self.answers / elapsed
            self.client_busy = (time.process_time() - began_cpu) / elapsed

    def drain(self) -> None:
        """Wait for the requests in flight."""
        for number, each in self._sockets.items():
            left = self._in_flight * self._answer_size - self._partial[number]
            while left:
                received = len(each.recv(left))
                if not received:
                    raise ConnectionError("the broker closed a connection")
                left -= received
            self._partial[number] = 0
            self.answers += self._in_flight

    def _send(self, number: int, count: int) -> None:
        first = self._next[number]
        requests = self._ring[first * self._size : (first + count) * self._size]
        if self._sockets[number].send(requests) < len(requests):
            raise ConnectionError("the broker does not read its requests")
        self._next[number] = (first + count) % self._in_flight

    def _receive(self, number: int) -> int:
        received = len(self._sockets[number].recv(65536))
        if not received:
            raise ConnectionError("the broker closed a connection")
        answers, self._partial[number] = divmod(self._partial[number] + received, self._answer_size)
        self.answers += answers
        return answers


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def with_correlation_id(request: bytes, correlation_id: int) -> bytes:
    return request[:8] + struct.pack(">i", correlation_id) + request[12:]


def first_answer(connection: socket.socket, request: bytes) -> int:
    """Send one request and read its response, which has the same size as all others."""
    connection.sendall(request)
    with connection.makefile("rb") as reader:
        size: int = struct.unpack(">i", reader.read(4))[0]
        reader.read(size)
    return 4 + size

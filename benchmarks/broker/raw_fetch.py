"""Load of large Fetch requests: each connection sends the next request as soon as a response has arrived."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from benchmarks.broker.small_requests import TIMEOUT, connect, first_answer

RECEIVE_BYTES = 1024 * 1024


class Fetched(NamedTuple):
    bytes_per_second: float
    bytes: int
    client_busy: float


class _Answer:
    """The response that a connection is receiving."""

    __slots__ = ("connection", "left")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.left = 0


def fetch(port: int, requests: Sequence[bytes], answer_bytes: int, connections: int, seconds: float) -> Fetched:
    """Send `requests` in turn; each must get a response of at least `answer_bytes`."""
    answers = {each.fileno(): _Answer(each) for each in (connect(port) for _ in range(connections))}
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    next_request = cycle(requests)
    clock = time.perf_counter
    total = 0
    try:
        with select.epoll() as poll:
            for number, answer in answers.items():
                poll.register(number, select.EPOLLIN)
                for request in requests:  # so that all of it is in the page cache
                    first_answer(answer.connection, request)
            began, began_cpu = clock(), time.process_time()
            for answer in answers.values():
                answer.connection.sendall(next(next_request))
            while clock() < began + seconds:
                for number, _ in poll.poll(TIMEOUT):
                    answer = answers[number]
                    received = answer.connection.recv_into(buffer)
                    if not received:
                        raise ConnectionError("the broker closed a connection")
                    total += received
                    if not answer.left:
                        answer.left = 4 + _size(buffer[:received], answer_bytes)
                    answer.left -= received
                    if not answer.left:
                        answer.connection.sendall(next(next_request))
            elapsed = clock() - began
            busy = (time.process_time() - began_cpu) / elapsed
        return Fetched(total / elapsed, total, busy)
    finally:
        for answer in answers.values():
            answer.connection.close()


def _size(start: memoryview, at_least: int) -> int:
    size: int = struct.unpack_from(">i", start)[0]
    if size < at_least:
        raise RuntimeError(f"a Fetch was answered with {size} bytes, not with {at_least} or more")
    return size

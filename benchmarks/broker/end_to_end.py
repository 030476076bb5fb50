"""End-to-end latency: one connection produces at a steady rate, another waits in a Fetch for what comes.

Both belong to one thread, so that a record's way is measured on one clock: from just before its request is sent to just
after the Fetch's answer that holds it has been received.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Final

from benchmarks.broker import frames
from benchmarks.broker.small_requests import TIMEOUT, connect, first_answer

MAX_BYTES: Final = 1024 * 1024
# Fetch's fetch_offset, found in the prebuilt request by this value and replaced from then on.
PLACEHOLDER: Final = 0x0102030405060708


def latencies(port: int, topic: str, value: bytes, per_second: int, seconds: float) -> tuple[list[float], int]:
    """Seconds, record by record, and how many records the topic has then. It must be empty before."""
    batch = frames.batch(value)
    produce = frames.produce(topic, batch)
    fetch = frames.fetch(topic, PLACEHOLDER, MAX_BYTES)
    count = int(per_second * seconds)
    with connect(port) as producer, connect(port) as consumer:
        answer_size = first_answer(producer, produce)
        reader = _Reader(consumer, fetch, len(batch), next_offset=1)
        sent: list[float] = []
        taken: list[float] = []
        clock = time.perf_counter
        began = clock()
        deadline = began + seconds + TIMEOUT
        reader.ask()
        while len(taken) < count:
            now = clock()
            due = began + len(sent) / per_second
            if len(sent) < count and now >= due:
                sent.append(clock())
                producer.sendall(produce)
                continue
            if now > deadline:
                raise TimeoutError(f"{count - len(taken)} records of {count} did not arrive")
            wait = due - now if len(sent) < count else 1.0
            readable, _, _ = select.select([producer, consumer], [], [], wait)
            if consumer in readable:
                records = reader.receive()
                now = clock()
                taken.extend(now - start for start in sent[len(taken) : len(taken) + records])
                reader.ask_if_idle()
            if producer in readable:
                producer.recv(64 * answer_size)
    return taken, count + 1


class _Reader:
    """A long-polling Fetch: one request after the other, each from the offset where the last answer ended."""

    def __init__(self, connection: socket.socket, request: bytes, batch_size: int, next_offset: int) -> None:
        self._connection = connection
        self._request = bytearray(request)
        self._offset_at = request.index(struct.pack(">q", PLACEHOLDER))
        self._batch_size = batch_size
        self._next_offset = next_offset
        self._received = bytearray()
        self._waiting = False

    def ask(self) -> None:
        struct.pack_into(">q", self._request, self._offset_at, self._next_offset)
        self._connection.sendall(self._request)
        self._waiting = True

    def ask_if_idle(self) -> None:
        if not self._waiting:
            self.ask()

    def receive(self) -> int:
        """How many records the answer holds, 0 while it is not whole. Each is a batch of its own, all of one size."""
        data = self._connection.recv(2 * MAX_BYTES)
        if not data:
            raise ConnectionError("the broker closed a connection")
        self._received += data
        if len(self._received) < 4 or len(self._received) < 4 + struct.unpack_from(">i", self._received)[0]:
            return 0
        records = len(self._received) // self._batch_size  # what is around them is smaller than one of them
        self._received.clear()
        self._next_offset += records
        self._waiting = False
        return records

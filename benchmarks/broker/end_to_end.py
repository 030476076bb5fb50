"""End-to-end latency: connections produce at a steady rate in turn, another waits for the records in a Fetch.

All run in one thread, so that a record is timed by one clock: from just before its request is sent until just after
the Fetch response that contains it has arrived. A broker answers the requests of one connection one after the other, so
where an answer waits for replicas, one connection alone may not reach the rate. With several, the n-th record that
arrives is taken for the n-th that was sent, whichever of them it is.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import ExitStack
from typing import Final

from benchmarks.broker import frames
from benchmarks.broker.small_requests import TIMEOUT, connect, first_answer

MAX_BYTES: Final = 1024 * 1024
# A placeholder for fetch_offset, to find it in the prebuilt request and patch it.
PLACEHOLDER: Final = 0x0102030405060708


def latencies(
    port: int, topic: str, value: bytes, per_second: int, seconds: float, connections: int = 1
) -> tuple[list[float], int]:
    """Seconds for each record, and the number of records in the topic afterwards. The topic must be empty before."""
    batch = frames.batch(value)
    produce = frames.produce(topic, batch)
    fetch = frames.fetch(topic, PLACEHOLDER, MAX_BYTES)
    count = int(per_second * seconds)
    with ExitStack() as stack:
        producers = [stack.enter_context(connect(port)) for _ in range(connections)]
        consumer = stack.enter_context(connect(port))
        answer_size = first_answer(producers[0], produce)
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
                producers[len(sent) % connections].sendall(produce)
                continue
            if now > deadline:
                raise TimeoutError(f"{count - len(taken)} records of {count} did not arrive")
            wait = due - now if len(sent) < count else 1.0
            readable, _, _ = select.select([*producers, consumer], [], [], wait)
            if consumer in readable:
                records = reader.receive()
                now = clock()
                taken.extend(now - start for start in sent[len(taken) : len(taken) + records])
                reader.ask_if_idle()
                readable.remove(consumer)
            for producer in readable:
                producer.recv(64 * answer_size)
    return taken, count + 1


class _Reader:
    """A long-polling Fetch: one request after another, each from where the last response ended."""

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
        """The number of records in the response, 0 until it is complete. Each is a separate batch, all of one size."""
        data = self._connection.recv(2 * MAX_BYTES)
        if not data:
            raise ConnectionError("the broker closed a connection")
        self._received += data
        if len(self._received) < 4 or len(self._received) < 4 + struct.unpack_from(">i", self._received)[0]:
            return 0
        records = len(self._received) // self._batch_size  # the rest of the response is smaller than one batch
        self._received.clear()
        self._next_offset += records
        self._waiting = False
        return records

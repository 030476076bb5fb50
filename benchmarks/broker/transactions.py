"""Load of transactions: producers that each send a batch, commit, and begin the next one.

With stock clients we would measure the clients, so the producers are bare: one connection each, all in one thread, with
prebuilt requests that are only patched. They use either of the two client flows:

    classic   AddPartitionsToTxn, Produce, EndTxn: the epoch stays, sequences go on (librdkafka, kafka-python, aiokafka)
    newest    Produce, which adds its partition by itself, and EndTxn, which gives the next epoch (KIP-890, Java 4)

As in a client, a request that arrives before the last transaction has completed (CONCURRENT_TRANSACTIONS) is retried a
moment later.
"""

from __future__ import annotations

import heapq
import select
import struct
import time
from enum import Enum
from typing import Any, Final, NamedTuple

from barnabas.client.requests import transactions
from barnabas.client.requests.data import produce
from barnabas.client.requests.lookup import TRANSACTION, find_coordinator
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import request_frame
from barnabas.protocol.records.batch import BASE_SEQUENCE_POSITION, PRODUCER_EPOCH_POSITION, PRODUCER_ID_POSITION, seal
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.schema import Message
from benchmarks.broker.small_requests import TIMEOUT, connect

INIT_PRODUCER_ID_VERSION: Final = 4
ADD_PARTITIONS_VERSION: Final = 3
RETRY_AFTER: Final = 0.002
BEING_SET_UP: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}

# Placeholders, to find the fields in a prebuilt request and patch them.
PRODUCER_ID: Final = 0x0102030405060708
PRODUCER_EPOCH: Final = 0x090A
_PRODUCER: Final = struct.pack(">qh", PRODUCER_ID, PRODUCER_EPOCH)


class Way(Enum):
    """The requests of one transaction, and the versions that this flow needs."""

    CLASSIC = "classic"
    NEWEST = "newest"

    @property
    def produce_version(self) -> int:
        return 11 if self is Way.CLASSIC else 12

    @property
    def end_version(self) -> int:
        return 4 if self is Way.CLASSIC else 5


class Done(NamedTuple):
    per_second: float
    transactions: int  # in total, including those still open when the time was up
    refusals: int  # requests that were too early and had to be retried
    client_busy: float


def run(
    port: int, topic: str, partitions: int, name: str, producers: int, messages: int, way: Way, seconds: float
) -> Done:
    """Let producers commit transactions of this many messages one after another, each to one partition."""
    everyone: list[_Producer] = []
    try:
        for number in range(producers):
            everyone.append(_Producer(port, topic, number % partitions, f"{name}-{number}", messages, way))
        load = _Load(everyone)
        load.run(seconds)
        return Done(load.per_second, load.transactions, load.refusals, load.client_busy)
    finally:
        for each in everyone:
            each.socket.close()


class _Request:
    """A prebuilt request that names its producer, and the position of the error code in its response."""

    def __init__(self, key: ApiKey, message: Message, version: int, error_at: int) -> None:
        self.bytes = bytearray(request_frame(key, message, version))
        self.error_at = error_at
        self._producer_at = self.bytes.find(_PRODUCER)

    def patch(self, producer_id: int, producer_epoch: int) -> None:
        struct.pack_into(">qh", self.bytes, self._producer_at, producer_id, producer_epoch)


class _Batch(_Request):
    """A Produce, with the producer and a sequence inside its checksummed batch."""

    def __init__(self, message: Message, version: int, error_at: int, batch: bytes) -> None:
        super().__init__(ApiKey.PRODUCE, message, version, error_at)
        start = self.bytes.find(batch)
        self._batch = memoryview(self.bytes)[start : start + len(batch)]

    def patch_batch(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        struct.pack_into(">q", self._batch, PRODUCER_ID_POSITION, producer_id)
        struct.pack_into(">h", self._batch, PRODUCER_EPOCH_POSITION, producer_epoch)
        struct.pack_into(">i", self._batch, BASE_SEQUENCE_POSITION, sequence)
        seal(self._batch)


class _Producer:
    def __init__(self, port: int, topic: str, partition: int, name: str, messages: int, way: Way) -> None:
        self.name = name
        self._messages = messages
        self._way = way
        self.producer_id, self.producer_epoch = init_producer_id(port, name)
        self._sequence = 0
        # A response starts with size, correlation id and tags; then, except for Produce, the throttle time.
        after_throttle_time = 4 + 4 + 1 + 4
        name_and_counts = 1 + (1 + len(topic)) + 1 + 4  # of topics; the topic's name; of partitions; the index
        adding = transactions.add_partitions_to_txn(
            ADD_PARTITIONS_VERSION, name, PRODUCER_ID, PRODUCER_EPOCH, (topic, partition)
        )
        now = int(time.time() * 1000)
        batch = bytes(
            build_batch(
                [NewRecord(now, None, bytes(100))] * messages,
                producer_id=PRODUCER_ID,
                producer_epoch=PRODUCER_EPOCH,
                base_sequence=0,
                transactional=True,
            )
        )
        producing = produce((topic, partition, batch), timeout_ms=30_000, transactional_id=name)
        ending = transactions.end_txn(name, PRODUCER_ID, PRODUCER_EPOCH, commit=True)
        self._add = _Request(
            ApiKey.ADD_PARTITIONS_TO_TXN, adding, ADD_PARTITIONS_VERSION, after_throttle_time + name_and_counts
        )
        self._produce = _Batch(producing, way.produce_version, 4 + 4 + 1 + name_and_counts, batch)
        self._end = _Request(ApiKey.END_TXN, ending, way.end_version, after_throttle_time)
        self._add.patch(self.producer_id, self.producer_epoch)
        self._end.patch(self.producer_id, self.producer_epoch)
        self.request: _Request = self._end
        self.socket = connect(port)
        self._received = bytearray()

    def begin(self) -> None:
        self._produce.patch_batch(self.producer_id, self.producer_epoch, self._sequence)
        self.request = self._add if self._way is Way.CLASSIC else self._produce

    def send(self) -> None:
        self.socket.sendall(self.request.bytes)

    def receive(self) -> tuple[bool, bool]:
        """Read a response: whether it succeeded or must be retried, and whether it has arrived completely."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"the broker closed the connection of {self.name}")
        self._received += data
        received = self._received
        if len(received) < 4 or len(received) < 4 + struct.unpack_from(">i", received)[0]:
            return False, False
        (error,) = struct.unpack_from(">h", received, self.request.error_at)
        if error not in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS):
            raise RuntimeError(f"{self.name}: {ErrorCode(error).name}")
        if error == ErrorCode.NONE and self.request is self._end:
            self._ended()
        received.clear()
        return error == ErrorCode.NONE, True

    def _ended(self) -> None:
        if self._way is Way.CLASSIC:
            self._sequence += self._messages
            return
        self.producer_id, self.producer_epoch = struct.unpack_from(">qh", self._received, self._end.error_at + 2)
        self._end.patch(self.producer_id, self.producer_epoch)

    def advance(self) -> bool:
        """Go to the next request. Return False if the transaction has ended."""
        if self.request is self._end:
            return False
        self.request = self._produce if self.request is self._add else self._end
        return True


class _Load:
    def __init__(self, producers: list[_Producer]) -> None:
        self._producers = {each.socket.fileno(): each for each in producers}
        self._resend: list[tuple[float, int]] = []
        self.transactions = 0
        self.refusals = 0
        self.per_second = 0.0
        self.client_busy = 0.0

    def run(self, seconds: float) -> None:
        clock = time.perf_counter
        under_way = len(self._producers)
        with select.epoll() as poll:
            began, began_cpu = clock(), time.process_time()
            for number, producer in self._producers.items():
                poll.register(number, select.EPOLLIN)
                producer.begin()
                producer.send()
            is_over = False
            while under_way:
                wait = max(0.0, self._resend[0][0] - clock()) if self._resend else TIMEOUT
                ready = poll.poll(wait)
                if not ready and not self._resend:
                    raise TimeoutError("the broker does not answer")
                for number, _ in ready:
                    producer = self._producers[number]
                    accepted, whole = producer.receive()
                    if not whole:
                        continue
                    if not accepted:
                        self.refusals += 1
                        heapq.heappush(self._resend, (clock() + RETRY_AFTER, number))
                        continue
                    if not producer.advance():
                        self.transactions += 1
                        if is_over:
                            under_way -= 1
                            continue
                        producer.begin()
                    producer.send()
                now = clock()
                while self._resend and self._resend[0][0] <= now:
                    self._producers[heapq.heappop(self._resend)[1]].send()
                if not is_over and now - began >= seconds:
                    is_over = True
                    self.per_second = self.transactions / (now - began)
                    self.client_busy = (time.process_time() - began_cpu) / (now - began)


def init_producer_id(port: int, transactional_id: str | None = None) -> tuple[int, int]:
    """A producer's id and epoch. The first request waits for the coordinator or producer ids, as clients do."""
    deadline = time.monotonic() + TIMEOUT
    init = transactions.init_producer_id(transactional_id)
    with Wire("127.0.0.1", port) as wire:
        if transactional_id is not None:
            find = find_coordinator(3, transactional_id, key_type=TRANSACTION)
            _ask(wire, ApiKey.FIND_COORDINATOR, find, 3, deadline)
        answer = _ask(wire, ApiKey.INIT_PRODUCER_ID, init, INIT_PRODUCER_ID_VERSION, deadline)
    return answer.producer_id, answer.producer_epoch


def _ask(wire: Wire, key: ApiKey, message: Message, version: int, deadline: float) -> Any:
    while True:
        answer = wire.ask(key, message, version)
        if answer.error_code == ErrorCode.NONE:
            return answer
        if answer.error_code not in BEING_SET_UP or time.monotonic() > deadline:
            raise RuntimeError(f"{key.api_name}: {ErrorCode(answer.error_code).name}")
        time.sleep(0.01)  # nothing tells a client that the coordinator is ready, so poll

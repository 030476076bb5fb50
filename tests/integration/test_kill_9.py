"""A broker that is killed with kill -9, again and again, loses nothing that it has acknowledged.

Writers keep writing until the broker is gone. The moment is chosen by how much has been acknowledged, from a seed that
is printed; BARNABAS_SEED repeats it.
"""

import contextlib
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.client.requests.data import fetch, produce
from barnabas.client.requests.transactions import init_producer_id
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import request_frame
from barnabas.protocol.records.batch import CRC_POSITION, read_header, validate_batch
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.storage.check import check_directory
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import Side

ROUNDS = 20
PARTITIONS = 2
SEGMENT_BYTES = 1024 * 1024  # the smallest that Kafka allows
BATCH_BYTES = 128 * 1024
TOPICS = {"plain": {}, "compressed": {}, "synced": {"flush.messages": "1"}, "idempotent": {}}
SETTINGS = {
    "node.id": "1",
    "log.retention.ms": "-1",
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.flush.offset.checkpoint.interval.ms": "20",
}
PRODUCE_VERSION = 9


class Place(NamedTuple):
    topic: str
    partition: int


def body(batch: bytes | memoryview) -> bytes:
    """The part of a batch that a broker must not change."""
    return bytes(batch[CRC_POSITION:])


class Ledger:
    """What was sent to each partition, where it is according to the broker's answers, and what went wrong."""

    def __init__(self) -> None:
        self.sent: dict[Place, set[bytes]] = defaultdict(set)
        self.acknowledged: dict[Place, dict[int, bytes]] = defaultdict(dict)
        self.error: BaseException | None = None
        self.killing = False  # from now on connections break
        self._count = 0
        self._changed = threading.Condition()

    def send(self, place: Place, batch: bytes) -> None:
        self.sent[place].add(body(batch))

    def acknowledge(self, place: Place, base_offset: int, batch: bytes) -> None:
        self.acknowledged[place][base_offset] = body(batch)
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = error
            self._changed.notify_all()

    def wait_for(self, more: int) -> None:
        """Wait until this many more batches have been acknowledged."""
        with self._changed:
            enough = self._count + more
            assert self._changed.wait_for(lambda: self._count >= enough or self.error, timeout=60)


class Writer(threading.Thread):
    """Writes until the broker is killed."""

    def __init__(self, port: int, rng: random.Random, ledger: Ledger, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self._port = port
        self._rng = random.Random(rng.random())
        self._ledger = ledger

    def run(self) -> None:
        try:
            with Wire("127.0.0.1", self._port) as wire:
                while True:
                    self.write(wire, [self.batch() for _ in range(self._rng.randint(1, 8))])
        except BaseException as error:
            if not (self._ledger.killing and isinstance(error, ConnectionError)):
                self._ledger.fail(error)

    def batch(self) -> tuple[Place, bytes]:
        codec = self._rng.choice(list(CompressionType)) if self.topic == "compressed" else CompressionType.NONE
        return Place(self.topic, self._rng.randrange(PARTITIONS)), random_batch(self._rng, compression=codec)

    def write(self, wire: Wire, batches: list[tuple[Place, bytes]]) -> None:
        """Send some together, then read their answers."""
        for place, batch in batches:
            self._ledger.send(place, batch)
        wire.send(b"".join(self.request(place, batch) for place, batch in batches))
        for place, batch in batches:
            response = wire.answer(ApiKey.PRODUCE, PRODUCE_VERSION)
            (answer,) = response.responses[0].partition_responses
            assert answer.error_code == ErrorCode.NONE
            self.acknowledged(place, answer.base_offset, batch)

    def request(self, place: Place, batch: bytes) -> bytes:
        return request_frame(ApiKey.PRODUCE, produce((*place, batch)), PRODUCE_VERSION)

    def acknowledged(self, place: Place, base_offset: int, batch: bytes) -> None:
        self._ledger.acknowledge(place, base_offset, batch)


class IdempotentProducer:
    """What an idempotent producer knows, longer than any connection: what it sends again, and what comes next."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.unanswered: dict[Place, bytes] = {}
        self.sequence: dict[Place, int] = defaultdict(int)


class IdempotentWriter(Writer):
    """Writes one batch at a time to each partition, and first of all again what had no answer."""

    def __init__(self, port: int, rng: random.Random, ledger: Ledger, producer: IdempotentProducer) -> None:
        super().__init__(port, rng, ledger, "idempotent")
        self._producer = producer

    def batch(self) -> tuple[Place, bytes]:
        place = Place(self.topic, self._rng.randrange(PARTITIONS))
        producer = self._producer
        if place not in producer.unanswered:
            batch = random_batch(
                self._rng,
                producer_id=producer.producer_id,
                producer_epoch=0,
                base_sequence=producer.sequence[place],
            )
            producer.sequence[place] += read_header(batch).record_count
            producer.unanswered[place] = batch
        return place, producer.unanswered[place]

    def write(self, wire: Wire, batches: list[tuple[Place, bytes]]) -> None:
        super().write(wire, list(dict(batches).items()))

    def acknowledged(self, place: Place, base_offset: int, batch: bytes) -> None:
        del self._producer.unanswered[place]
        super().acknowledged(place, base_offset, batch)


def random_batch(rng: random.Random, **fields: object) -> bytes:
    now_ms = int(time.time() * 1000)
    size = rng.randint(1, BATCH_BYTES)
    records = [NewRecord(now_ms, None, rng.randbytes(size // 4)) for _ in range(rng.randint(1, 4))]
    return bytes(build_batch(records, **fields))


def read_partition(wire: Wire, place: Place) -> Iterator[tuple[int, bytes]]:
    """All batches of a partition: dense offsets, valid checksums, up to the high watermark."""
    offset = 0
    while True:
        request = fetch((*place, offset), partition_max_bytes=8 * SEGMENT_BYTES)
        (answer,) = wire.ask(ApiKey.FETCH, request, 12).responses[0].partitions
        assert answer.error_code == ErrorCode.NONE
        records = memoryview(answer.records)
        if not records:
            assert offset == answer.high_watermark
            return
        while len(records) >= 12 and read_header(records).size <= len(records):
            header = validate_batch(records)
            assert header.base_offset == offset
            yield offset, body(records[: header.size])
            offset = header.next_offset
            records = records[header.size :]


def check_nothing_is_lost(port: int, ledger: Ledger) -> None:
    with Wire("127.0.0.1", port) as wire:
        for place in [Place(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]:
            found = dict(read_partition(wire, place))
            missing = {o: b for o, b in ledger.acknowledged[place].items() if found.get(o) != b}
            assert not missing, f"{place}: acknowledged and not there: {sorted(missing)}"
            bodies = list(found.values())
            assert len(bodies) == len(set(bodies)), f"{place}: something is there twice"
            assert ledger.sent[place].issuperset(bodies), f"{place}: something is there that nobody sent"


def take_producer_ids(port: int, count: int) -> list[int]:
    request = init_producer_id(None)
    with Wire("127.0.0.1", port) as wire:
        answers = [wire.ask(ApiKey.INIT_PRODUCER_ID, request, 4) for _ in range(count)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    return [answer.producer_id for answer in answers]


@contextlib.contextmanager
def said(broker: BrokerProcess) -> Iterator[None]:
    """Print the broker's output if a test fails."""
    try:
        yield
    finally:
        print(broker.log)


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    seed = int(os.environ.get("BARNABAS_SEED") or random.randrange(2**32))
    print(f"BARNABAS_SEED={seed}")
    rng = random.Random(seed)
    ledger = Ledger()
    with BrokerProcess(tmp_path, settings=SETTINGS) as broker, said(broker):
        side = Side(broker.port)
        for topic, configs in TOPICS.items():
            side.create_topic(topic, PARTITIONS, configs)
        side.close()
        producer_ids = take_producer_ids(broker.port, 1)
        producer = IdempotentProducer(producer_ids[0])
        for _ in range(ROUNDS):
            writers = [
                *(Writer(broker.port, rng, ledger, topic) for topic in ("plain", "compressed", "synced")),
                IdempotentWriter(broker.port, rng, ledger, producer),
            ]
            for writer in writers:
                writer.start()
            ledger.wait_for(rng.randint(1, 80))
            ledger.killing = True
            broker.kill()
            for writer in writers:
                writer.join()
            if ledger.error is not None:
                raise ledger.error
            ledger.killing = False
            broker.start()
            check_nothing_is_lost(broker.port, ledger)
            producer_ids += take_producer_ids(broker.port, 3)
        assert broker.stop() == 0
    assert len(set(producer_ids)) == len(producer_ids)
    assert check_directory(str(tmp_path), deep=True) == []
    assert len(list(tmp_path.glob("*/*.log"))) > len(TOPICS) * PARTITIONS  # segments were rolled

"""A share group under load: ten members read one partition, each with its own connection, and accept what they get."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from barnabas.client.requests import shares
from barnabas.client.requests.data import produce
from barnabas.client.requests.records import batch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import decode_answer, request_frame
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.share_side import ShareSide

MEMBERS: Final = 10
RECORDS_PER_BATCH: Final = 100
VERSION: Final = 2
SETTINGS: Final = {
    "node.id": "1",
    "group.share.partition.max.record.locks": "10000",
    "group.share.max.partition.max.record.locks": "10000",
    "share.coordinator.state.topic.num.partitions": "1",
}


class Member(threading.Thread):
    """Fetches, and accepts with the next fetch what it got, until the group has read so many records."""

    def __init__(self, port: int, number: int, place: tuple[bytes, int], read: list[int], wanted: int) -> None:
        super().__init__(daemon=True)
        self._wire = Wire("127.0.0.1", port)
        self._name = f"m{number}"
        self._place = place
        self._read = read
        self._wanted = wanted
        self._number = number

    def run(self) -> None:
        epoch = 0
        got: list[tuple[int, int, list[int]]] = []
        while sum(self._read) < self._wanted:
            acknowledged = {self._place: got} if got else None
            message = shares.share_fetch(
                "g", self._name, epoch, [self._place], acknowledgements=acknowledged, max_wait_ms=200, min_bytes=1
            )
            self._wire.send(request_frame(ApiKey.SHARE_FETCH, message, VERSION))
            body = self._wire.receive()
            assert body is not None
            answer = decode_answer(body, ApiKey.SHARE_FETCH, VERSION)
            assert not answer.error_code
            epoch += 1
            self._read[self._number] += sum(last - first + 1 for first, last, _ in got)
            got = []
            for topic in answer.responses:
                for partition in topic.partitions:
                    assert not partition.error_code
                    assert not partition.acknowledge_error_code
                    got += [(each.first_offset, each.last_offset, [1]) for each in partition.acquired_records]
        self._wire.close()


def measure(port: int, batches: int) -> float:
    """Records per second."""
    side = ShareSide(port)
    side.group = "g"
    place = side.place("t")
    side.wait_for_coordinator()
    while side.initialize(place).results[0].partitions[0].error_code:
        time.sleep(0.1)
    records = batch(*(b"x" * 100 for _ in range(RECORDS_PER_BATCH)))
    for _ in range(batches):
        side.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 9)
    read = [0] * MEMBERS
    wanted = batches * RECORDS_PER_BATCH
    members = [Member(port, number, place, read, wanted) for number in range(MEMBERS)]
    begin = time.perf_counter()
    for member in members:
        member.start()
    for member in members:
        member.join()
    return wanted / (time.perf_counter() - begin)


def main(quick: bool = False) -> None:
    batches = 1000 if quick else 5000
    with ApacheKafka(SETTINGS, jvm_options=LONG_LIVED) as kafka:
        theirs = measure(kafka.port, batches)
    with tempfile.TemporaryDirectory() as folder, BrokerProcess(Path(folder, "data"), settings=SETTINGS) as barnabas:
        ours = measure(barnabas.port, batches)
    print(f"share group, {MEMBERS} members on one partition, records per second:")
    print(f"  Apache Kafka {theirs:,.0f}   Barnabas {ours:,.0f}   ratio {ours / theirs:.2f}")

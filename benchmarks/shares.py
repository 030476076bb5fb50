"""A share group under load: ten members read one partition, each with its own connection, and accept what they get.

Apache Kafka and Barnabas take turns: each round is a new group that reads the same records. The first one warms up.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Final

from barnabas.client.requests import shares
from barnabas.client.requests.data import produce
from barnabas.client.requests.records import batch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import decode_answer, request_frame
from benchmarks.groups import processor_seconds
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

    def __init__(
        self, port: int, group: str, number: int, place: tuple[bytes, int], read: list[int], wanted: int
    ) -> None:
        super().__init__(daemon=True)
        self._wire = Wire("127.0.0.1", port)
        self._group = group
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
                self._group,
                self._name,
                epoch,
                [self._place],
                acknowledgements=acknowledged,
                max_wait_ms=200,
                min_bytes=1,
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


def written(port: int, batches: int) -> ShareSide:
    """A side that knows the records that groups read."""
    side = ShareSide(port)
    side.place()
    side.wait_for_coordinator()
    records = batch(*(b"x" * 100 for _ in range(RECORDS_PER_BATCH)))
    for _ in range(batches):
        side.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 9)
    return side


def measure(side: ShareSide, port: int, pid: int, group: str, batches: int) -> tuple[float, float]:
    """Records per second, and the broker's processor time for a million of them."""
    side.group = group
    place = side.place()
    while side.initialize(place).results[0].partitions[0].error_code:
        time.sleep(0.1)
    read = [0] * MEMBERS
    wanted = batches * RECORDS_PER_BATCH
    members = [Member(port, group, number, place, read, wanted) for number in range(MEMBERS)]
    begin, used = time.perf_counter(), processor_seconds(pid)
    for member in members:
        member.start()
    for member in members:
        member.join()
    used = processor_seconds(pid) - used
    return wanted / (time.perf_counter() - begin), used / wanted * 1e6


def main(quick: bool = False) -> None:
    batches, rounds = (1000, 1) if quick else (5000, 3)
    with (
        tempfile.TemporaryDirectory() as folder,
        ApacheKafka(SETTINGS, jvm_options=LONG_LIVED) as kafka,
        BrokerProcess(Path(folder, "data"), settings=SETTINGS) as barnabas,
    ):
        brokers = {"Apache Kafka": (kafka.port, kafka.pid), "Barnabas": (barnabas.port, barnabas.process.pid)}
        sides = {name: written(port, batches) for name, (port, _) in brokers.items()}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in brokers}
        for number in range(1 + rounds):
            for name, (port, pid) in brokers.items():
                found[name].append(measure(sides[name], port, pid, f"g{number}", batches))
    print(f"share group, {MEMBERS} members on one partition:")
    medians = {
        name: (median(rate for rate, _ in each[1:]), median(used for _, used in each[1:]))
        for name, each in found.items()
    }
    for name, (rate, used) in medians.items():
        rates = ", ".join(f"{each:,.0f}" for each, _ in found[name][1:])
        print(f"  {name:<12}  {rate:9,.0f} records per second ({rates})  {used:6.2f} s of processor time per million")
    (their_rate, theirs), (our_rate, ours) = medians.values()
    print(f"  ratio         {our_rate / their_rate:9.2f}  {ours / theirs:6.2f}")

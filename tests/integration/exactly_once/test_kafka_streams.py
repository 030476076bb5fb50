"""Kafka Streams with exactly_once_v2 counts words through kills of brokers and of itself, right to the word.

Each word produces one record with its count so far. A word counted twice, or lost, breaks the sequence 1, 2...
"""

import subprocess
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas import Barnabas
from tests.integration.clients.interface import wait_until
from tests.support.apache_kafka import STREAMS, java_command
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[2] / "java" / "WordCount.java"
GUARANTEE = "exactly_once_v2"
PATIENCE = 90
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # As a client of the classic protocol asks for it.
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
}
WORDS = ["the", "castle", "the", "land", "surveyor", "the"]


@contextmanager
def word_count(bootstrap: str, folder: Path, protocol: str):
    command = java_command(
        PROGRAM, bootstrap, GUARANTEE, "lines", "counts", str(folder / "state"), protocol, dependencies=STREAMS
    )
    with (folder / "streams.log").open("a") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout.readline() == "running\n", (folder / "streams.log").read_text()[-3000:]
        yield process
        if process.poll() is None:
            process.stdin.close()
            process.wait(60)
    finally:
        process.kill()
        process.wait()


def write(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for _ in range(count):
        producer.produce("lines", " ".join(WORDS))
    assert producer.flush(PATIENCE) == 0


class Counts:
    """What a reader has seen, word by word."""

    def __init__(self, bootstrap: str, isolation_level: str = "read_committed") -> None:
        self.seen: dict[str, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": isolation_level,
                "enable.partition.eof": True,
            }
        )
        self._consumer.assign([TopicPartition("counts", 0, OFFSET_BEGINNING)])

    def wait_for(self, lines: float) -> None:
        deadline = time.monotonic() + PATIENCE
        while sum(map(len, self.seen.values())) < lines * len(WORDS):
            assert time.monotonic() < deadline, f"of {lines} lines there is {dict(self.seen)}"
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                self.seen[message.key().decode()].append(int(message.value()))

    def read_to_the_end(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < deadline, f"there is {dict(self.seen)}, and no end"
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                self.seen[message.key().decode()].append(int(message.value()))
            elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                return

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_words_are_counted_exactly(tmp_path: Path, protocol: str) -> None:
    lines = 0
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for each in admin.create_topics([NewTopic(name, 1, 1) for name in ("lines", "counts")]).values():
            each.result(60)
        counts = Counts(broker.bootstrap)
        with word_count(broker.bootstrap, tmp_path, protocol) as streams:
            for interrupt in (None, broker.kill, broker.stop):
                write(broker.bootstrap, 200)
                lines += 200
                if interrupt is not None:
                    interrupt()
                    broker.start()
                else:
                    counts.wait_for(lines)
            counts.wait_for(lines)
            uncommitted = Counts(broker.bootstrap, "read_uncommitted")
            uncommitted.wait_for(lines)
            write(broker.bootstrap, 50)
            lines += 50
            uncommitted.wait_for(lines - 49)  # it has started to count them and has not committed yet
            streams.kill()
            streams.wait()
            uncommitted.close()
        # And once more, with its state restored from the broker.
        with word_count(broker.bootstrap, tmp_path, protocol):
            write(broker.bootstrap, 50)
            lines += 50
            counts.wait_for(lines)
        counts.close()
        assert_exact(broker.bootstrap, lines)


def assert_exact(bootstrap: str, lines: int) -> None:
    everything = Counts(bootstrap)  # what is too much comes after what was waited for
    everything.read_to_the_end()
    everything.close()
    assert everything.seen == {word: list(range(1, lines * WORDS.count(word) + 1)) for word in WORDS}


def test_words_are_counted_exactly_on_three_brokers(tmp_path: Path) -> None:
    """Every leader moves, also those of the application's own topics and of its coordinators; then a broker dies."""
    lines = 0
    with Barnabas({**SETTINGS, "min.insync.replicas": "2"}, brokers=3, journal=False) as cluster:
        bootstrap = cluster.bootstrap_servers
        for name in ("lines", "counts"):
            cluster.create_topic(name)
        counts = Counts(bootstrap)
        with word_count(bootstrap, tmp_path, "streams"):
            for disturb in (None, move_every_leader, kill_a_coordinator):
                write(bootstrap, 100)
                lines += 100
                if disturb is not None:
                    disturb(cluster)
                counts.wait_for(lines)
        counts.close()
        assert_exact(bootstrap, lines)


def move_every_leader(cluster: Barnabas) -> None:
    for topic, state in cluster.state["topics"].items():
        for index, partition in enumerate(state["partitions"]):
            if len(partition["isr"]) == 3:
                follower = next(each for each in partition["isr"] if each != partition["leader"])
                cluster.move_leader(topic, index, to=follower)


def kill_a_coordinator(cluster: Barnabas) -> None:
    def all_in_sync() -> bool:
        topics = cluster.state["topics"].values()
        return all(len(each["isr"]) == 3 for topic in topics for each in topic["partitions"])

    wait_until(all_in_sync, "all replicas")
    node = cluster.nodes[cluster.state["topics"]["__transaction_state"]["partitions"][0]["leader"]]
    node.kill()
    node.start()

"""Kafka Streams with exactly_once_v2 counts words through kills of the broker and of itself, right to the word.

Each word that comes gives one record with its count so far. What is counted twice, or forgotten, breaks the row 1, 2...
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

from tests.support.apache_kafka import STREAMS, java_command
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "java" / "WordCount.java"
GUARANTEE = "exactly_once_v2"
PATIENCE = 90
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
WORDS = ["the", "castle", "the", "land", "surveyor", "the"]


@contextmanager
def word_count(broker: BrokerProcess, folder: Path):
    command = java_command(
        PROGRAM, broker.bootstrap, GUARANTEE, "lines", "counts", str(folder / "state"), dependencies=STREAMS
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


def write(broker: BrokerProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for _ in range(count):
        producer.produce("lines", " ".join(WORDS))
    assert producer.flush(PATIENCE) == 0


class Counts:
    """What a reader has seen, word by word."""

    def __init__(self, broker: BrokerProcess, isolation_level: str = "read_committed") -> None:
        self.seen: dict[str, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
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


def test_words_are_counted_exactly(tmp_path: Path) -> None:
    lines = 0
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for each in admin.create_topics([NewTopic(name, 1, 1) for name in ("lines", "counts")]).values():
            each.result(30)
        counts = Counts(broker)
        with word_count(broker, tmp_path) as streams:
            for interrupt in (None, broker.kill, broker.stop):
                write(broker, 200)
                lines += 200
                if interrupt is not None:
                    interrupt()
                    broker.start()
                else:
                    counts.wait_for(lines)
            counts.wait_for(lines)
            uncommitted = Counts(broker, "read_uncommitted")
            uncommitted.wait_for(lines)
            write(broker, 50)
            lines += 50
            uncommitted.wait_for(lines - 49)  # it has begun to count them, and not committed yet
            streams.kill()
            streams.wait()
            uncommitted.close()
        with word_count(broker, tmp_path):  # and once more, with its state made again from the broker
            write(broker, 50)
            lines += 50
            counts.wait_for(lines)
        counts.close()
        everything = Counts(broker)  # what is too much comes after what was waited for
        everything.read_to_the_end()
        everything.close()
    expected = {word: list(range(1, lines * WORDS.count(word) + 1)) for word in WORDS}
    assert everything.seen == expected

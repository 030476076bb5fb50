"""The same data for Apache Kafka's cleaner and for ours: what is left must be the same, batch by batch.

Kafka is kept from compacting while records are written, and a copy of its data is ours. Both compact; new records
arrive, and the tombstones expire; both compact again, ours starting from what Kafka has left. Then once more, because
markers are removed later than what they mark.
"""

import random
import shutil
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from barnabas.protocol.records.batch import COMPRESSION_MASK, validate_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.record import read_records
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.config import LogConfig
from barnabas.storage.log_directory import LogDirectory
from tests.support.apache_kafka import ApacheKafka
from tests.support.dump_log import dump_log

pytestmark = pytest.mark.java

ROUNDS = 3
SEGMENT_BYTES = 20_000
# How long tombstones stay, by topic: until the next compaction, or longer than the test takes.
TOPICS = {"soon": 0, "late": 86_400_000}
CODECS = [kind.name.lower() for kind in CompressionType]


@dataclass(frozen=True)
class Compacted:
    """Two copies of a data directory, before and after Kafka compacted it."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[Compacted]:
    folder = tmp_path_factory.mktemp("compaction")
    compacted = []
    with ApacheKafka({"log.cleaner.backoff.ms": "100"}, directory=folder) as kafka:
        create_topics(kafka.bootstrap)
        for number in range(ROUNDS):
            for topic in TOPICS:
                write(kafka.bootstrap, topic, seed=number)
            before = copy_topics(kafka.data_directory, folder / f"before {number}")
            set_dirty_ratio(kafka.bootstrap, "0.001")
            for topic in TOPICS:
                wait_until_cleaned(kafka.data_directory, topic)
            set_dirty_ratio(kafka.bootstrap, "1")
            compacted.append(Compacted(before, copy_topics(kafka.data_directory, folder / f"after {number}")))
    return compacted


def copy_topics(data_directory: Path, target: Path) -> Path:
    """What is on disk while there are no writes, as a crash would leave it."""
    target.mkdir()
    for name in ("meta.properties", "cleaner-offset-checkpoint"):
        if (data_directory / name).exists():
            shutil.copy(data_directory / name, target)
    for topic in TOPICS:
        shutil.copytree(data_directory / f"{topic}-0", target / f"{topic}-0")
    return target


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic, delete_retention_ms in TOPICS.items():
        config = {
            "cleanup.policy": "compact",
            "internal.segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "1",
            "delete.retention.ms": str(delete_retention_ms),
        }
        admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(60)


def set_dirty_ratio(bootstrap: str, ratio: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry("min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]) for topic in TOPICS]
    for done in admin.incremental_alter_configs(resources).values():
        done.result(60)


def write(bootstrap: str, topic: str, seed: int) -> None:
    """Keys that come again, tombstones and headers, with every codec, in transactions and without."""
    chance = random.Random(seed)
    for turn in range(20):
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "compression.type": chance.choice(CODECS),
            "linger.ms": 5,
            "enable.idempotence": bool(turn % 2),
        }
        transactional = turn % 4 == 3
        producer = Producer({**settings, "transactional.id": f"clerk {turn % 3}"} if transactional else settings)
        if transactional:
            producer.init_transactions(30)
            producer.begin_transaction()
        for number in range(60):
            key = f"{turn % 5} {chance.randrange(20)}" if number % 3 else f"every turn {chance.randrange(30)}"
            value = None if chance.random() < 0.1 else chance.randbytes(chance.randrange(100))
            producer.produce(topic, key=key, value=value, headers=[("turn", str(turn))], partition=0)
            if number % 20 == 19:
                assert producer.flush(60) == 0
        if transactional and chance.random() < 0.5:
            producer.commit_transaction(30)
        elif transactional:
            producer.abort_transaction(30)


def wait_until_cleaned(data_directory: Path, topic: str) -> None:
    """Wait until the cleaner has cleaned everything but the newest segment, which it reports only in a file."""
    newest = int(max((data_directory / f"{topic}-0").glob("*.log")).stem)
    deadline = time.monotonic() + 60
    while f"{topic} 0 {newest}\n" not in (data_directory / "cleaner-offset-checkpoint").read_text():
        assert time.monotonic() < deadline, "Apache Kafka did not compact the topic"
        time.sleep(0.05)


def compact(data_directory: Path, topic: str) -> None:
    """Compact a topic as its settings at Kafka say."""

    def config_of(name: str) -> LogConfig:
        return LogConfig(
            cleanup_policy=frozenset({"compact"}),
            segment_bytes=SEGMENT_BYTES,
            min_cleanable_dirty_ratio=0.001,
            delete_retention_ms=TOPICS.get(name, 0),
        )

    now_ms = int(time.time() * 1000)
    directory = LogDirectory(str(data_directory), node_id=1, config_of=config_of, now_ms=now_ms)
    name = TopicPartition(topic, 0)
    log = directory.logs[name]
    log.update_high_watermark(log.end_offset)
    flush = log.start_flush()
    flush.sync()
    log.finish_flush(flush, now_ms)
    cleaning = Cleaner({name: log}).choose(now_ms)
    assert cleaning is not None
    for step in cleaning.steps():
        step()
    assert cleaning.stats is not None
    directory.close()


def batches(folder: Path) -> Iterator[dict[str, Any]]:
    """Everything that a reader or a recovery can learn from the batches, but not how they are compressed."""
    for path in sorted(folder.glob("*.log")):
        data = memoryview(path.read_bytes())
        while data:
            header = validate_batch(data)
            yield {
                "offsets": (header.base_offset, header.last_offset),
                "attributes": header.attributes & ~(COMPRESSION_MASK if header.record_count == 0 else 0),
                "max timestamp": header.max_timestamp,
                "producer": (header.producer_id, header.producer_epoch, header.base_sequence),
                "leader epoch": header.partition_leader_epoch,
                "records": list(read_records(data, header)),
            }
            data = data[header.size :]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("number", range(ROUNDS))
class TestCompacted:
    @pytest.fixture
    def ours(self, rounds: list[Compacted], number: int, topic: str, tmp_path: Path) -> Path:
        ours = shutil.copytree(rounds[number].before, tmp_path / "ours")
        compact(ours, topic)
        return ours / f"{topic}-0"

    @pytest.fixture
    def theirs(self, rounds: list[Compacted], number: int, topic: str) -> Path:
        return rounds[number].after / f"{topic}-0"

    def test_the_same_batches_and_records_are_left(
        self, ours: Path, theirs: Path, rounds: list[Compacted], number: int, topic: str
    ) -> None:
        left = list(batches(theirs))
        assert list(batches(ours)) == left
        assert len(left) < len(list(batches(rounds[number].before / f"{topic}-0")))

    def test_the_same_segments_and_aborted_transactions_are_left(self, ours: Path, theirs: Path) -> None:
        assert names(ours, "*.log") == names(theirs, "*.log")
        assert aborted_transactions(ours) == aborted_transactions(theirs)

    def test_kafkas_own_tool_finds_nothing_wrong_with_the_indexes(self, ours: Path) -> None:
        dump_log([*sorted(ours.glob("*.index")), *sorted(ours.glob("*.timeindex"))], "--index-sanity-check")


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def aborted_transactions(folder: Path) -> dict[str, list[tuple[int, int, int]]]:
    """Producer id, marker and last stable offset of each.

    Not its first offset: we read this from a log that was not closed, and it no longer knows the original one.
    """
    return {
        path.name: [
            (producer_id, last_offset, last_stable_offset)
            for _, producer_id, _, last_offset, last_stable_offset in struct.iter_unpack(">hqqqq", path.read_bytes())
        ]
        for path in folder.glob("*.txnindex")
        if path.stat().st_size
    }

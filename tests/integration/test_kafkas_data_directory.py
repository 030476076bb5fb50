"""A data directory that Apache Kafka wrote, opened by our storage: the same records that Kafka's consumer reads."""

import base64
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header, validate_batch
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.record import Record, read_records
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.write import AppendResult
from tests.storage.support import found_by_timestamp
from tests.support.apache_kafka import ApacheKafka
from tests.support.java_client import run_scenario

pytestmark = pytest.mark.java

TOPICS = {
    "java": {"segment.bytes": "1048576"},
    "librdkafka": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"},
}


@dataclass(frozen=True)
class KafkasData:
    """An Apache Kafka that was stopped, what it left on disk, and what a consumer had read from each topic."""

    kafka: ApacheKafka
    directory: Path
    consumed: dict[str, Any]


@pytest.fixture(scope="module")
def kafkas_data(tmp_path_factory: pytest.TempPathFactory) -> KafkasData:
    folder = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka({"log.cleaner.backoff.ms": "100"}, directory=folder) as kafka:
        create_topics(kafka.bootstrap)
        run_scenario("WriteRecords", kafka.bootstrap, "java", "2500000")
        write_with_librdkafka(kafka.bootstrap, "librdkafka")
        write_with_librdkafka(kafka.bootstrap, "stamped")
        write_what_compacts(kafka.bootstrap, "compacted")
        wait_until_cleaned(kafka.data_directory, "compacted")
        consumed = run_scenario("ReadRecords", kafka.bootstrap, *TOPICS)
    return KafkasData(kafka, shutil.copytree(kafka.data_directory, folder / "copy"), consumed)


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()])
    for each in created.values():
        each.result(60)


def write_with_librdkafka(bootstrap: str, topic: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
        for number in range(100):
            producer.produce(topic, key=f"{codec} {number}", value=codec * number, headers=[("von", b"Klamm")])
        assert producer.flush(60) == 0


def write_what_compacts(bootstrap: str, topic: str) -> None:
    """Five segments in which most keys come again and some are deleted, a part of it in transactions."""
    plain = Producer({"bootstrap.servers": bootstrap, "compression.type": "snappy", "linger.ms": 5})
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "clerk", "linger.ms": 5})
    transactional.init_transactions(30)
    for turn in range(10):
        for number in range(60):
            plain.produce(topic, key=f"plain {number if turn % 2 else number * turn}", value=os.urandom(4000))
        plain.produce(topic, key=f"plain {turn}", value=None)
        assert plain.flush(60) == 0
        transactional.begin_transaction()
        for number in range(60):
            transactional.produce(topic, key=f"transactional {number}", value=os.urandom(4000))
        assert transactional.flush(60) == 0  # an abort would drop what is not sent yet
        if turn % 3:
            transactional.commit_transaction(30)
        else:
            transactional.abort_transaction(30)


def wait_until_cleaned(data_directory: Path, topic: str) -> None:
    """Wait until the cleaner has cleaned everything but the newest segment, which it reports only in a file."""
    newest = int(max((data_directory / f"{topic}-0").glob("*.log")).stem)
    deadline = time.monotonic() + 60
    while f"{topic} 0 {newest}\n" not in (data_directory / "cleaner-offset-checkpoint").read_text():
        assert time.monotonic() < deadline, "Apache Kafka did not compact the topic"
        time.sleep(0.05)


@pytest.fixture
def data_directory(kafkas_data: KafkasData, tmp_path: Path) -> Path:
    """A copy of what Kafka left, for a test to change as it likes."""
    return shutil.copytree(kafkas_data.directory, tmp_path / "data")


@contextmanager
def opened(data_directory: Path) -> Iterator[LogDirectory]:
    def config_of(topic: str) -> LogConfig:
        return LogConfig(cleanup_policy=frozenset({TOPICS.get(topic, {}).get("cleanup.policy", "delete")}))

    directory = LogDirectory(str(data_directory), node_id=1, config_of=config_of, now_ms=int(time.time() * 1000))
    try:
        yield directory
    finally:
        directory.close()


def read_log(log: Log) -> Iterator[tuple[BatchHeader, Record]]:
    """Every record that a client would see, with its batch's header, read a few kilobytes at a time."""
    offset = log.log_start_offset
    while (found := log.read(offset, 10_000, upper_bound=log.end_offset)) is not None:
        data = memoryview(os.pread(found.handle.fd, found.size, found.position))
        while len(data) >= HEADER_SIZE and len(data) >= (header := read_header(data)).size:
            validate_batch(data)
            if not header.is_control:
                yield from ((header, record) for record in read_records(data, header))
            offset = header.next_offset
            data = data[header.size :]


def read_committed(log: Log) -> Iterator[Record]:
    aborted = log.aborted_transactions(log.log_start_offset, log.end_offset)
    for header, record in read_log(log):
        in_aborted = any(
            transaction.producer_id == header.producer_id
            and transaction.first_offset <= record.offset <= transaction.last_offset
            for transaction in aborted
        )
        if not (header.is_transactional and in_aborted):
            yield record


def as_record(consumed: dict[str, Any]) -> Record:
    """A record as the Java program prints it."""
    return Record(
        consumed["offset"],
        consumed["timestamp"],
        decoded(consumed["key"]),
        decoded(consumed["value"]),
        [(key, decoded(value)) for key, value in consumed["headers"]] or (),
    )


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


@pytest.mark.parametrize("topic", TOPICS)
class TestOpened:
    def test_has_the_records_that_a_consumer_reads(
        self, kafkas_data: KafkasData, data_directory: Path, topic: str
    ) -> None:
        with opened(data_directory) as directory:
            log = directory.logs[TopicPartition(topic, 0)]
            assert log.end_offset == log.high_watermark == kafkas_data.consumed[topic]["end_offset"]
            found = [record for _, record in read_log(log)]
        assert found == [as_record(record) for record in kafkas_data.consumed[topic]["read_uncommitted"]]

    def test_knows_which_transactions_were_aborted(
        self, kafkas_data: KafkasData, data_directory: Path, topic: str
    ) -> None:
        with opened(data_directory) as directory:
            found = list(read_committed(directory.logs[TopicPartition(topic, 0)]))
        assert found == [as_record(record) for record in kafkas_data.consumed[topic]["read_committed"]]

    def test_finds_the_offsets_that_kafka_finds_by_time(
        self, kafkas_data: KafkasData, data_directory: Path, topic: str
    ) -> None:
        expected = kafkas_data.consumed[topic]["offsets_for_timestamps"]
        with opened(data_directory) as directory:
            log = directory.logs[TopicPartition(topic, 0)]
            found = {timestamp: found_by_timestamp(log, int(timestamp)) for timestamp in expected}
        assert {timestamp: each and each.offset for timestamp, each in found.items()} == expected


@pytest.mark.parametrize("topic", TOPICS)
class TestRecovered:
    """The same after the loss of everything that can be rebuilt from the log itself."""

    def test_has_the_same_records_producers_and_times(
        self, kafkas_data: KafkasData, data_directory: Path, topic: str
    ) -> None:
        with opened(data_directory) as directory:
            producers = directory.logs[TopicPartition(topic, 0)].producer_state.snapshot()
        lose_all_but_the_logs(data_directory)

        with opened(data_directory) as directory:
            log = directory.logs[TopicPartition(topic, 0)]
            records = list(read_committed(log))
            expected = kafkas_data.consumed[topic]["offsets_for_timestamps"]
            found = {timestamp: found_by_timestamp(log, int(timestamp)) for timestamp in expected}
            assert sorted(log.producer_state.snapshot()) == sorted(producers)
        assert records == [as_record(record) for record in kafkas_data.consumed[topic]["read_committed"]]
        assert {timestamp: each and each.offset for timestamp, each in found.items()} == expected


def test_the_index_of_aborted_transactions_is_made_again(kafkas_data: KafkasData, data_directory: Path) -> None:
    lose_all_but_the_logs(data_directory)
    with opened(data_directory):
        pass
    made_again = transaction_indexes(data_directory / "java-0")
    assert made_again == transaction_indexes(kafkas_data.directory / "java-0")
    assert made_again


def lose_all_but_the_logs(data_directory: Path) -> None:
    for path in data_directory.rglob("*"):
        if path.is_file() and path.suffix != ".log" and path.name not in ("meta.properties", "partition.metadata"):
            path.unlink()


def transaction_indexes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}


def test_kafka_goes_on_with_what_we_appended(kafkas_data: KafkasData) -> None:
    now_ms = int(time.time() * 1000)
    batch = memoryview(build_batch([NewRecord(now_ms, b"key", b"ours")], compression=CompressionType.ZSTD))
    with opened(kafkas_data.kafka.data_directory) as directory:
        log = directory.logs[TopicPartition("librdkafka", 0)]
        [appended] = log.append([batch], leader_epoch=1, now_ms=now_ms)
        assert isinstance(appended, AppendResult)
        log.update_high_watermark(log.end_offset)

    with kafkas_data.kafka as kafka:
        consumed = run_scenario("ReadRecords", kafka.bootstrap, *TOPICS)
    ours = {"offset": appended.base_offset, "timestamp": now_ms, "key": encoded(b"key"), "value": encoded(b"ours")}
    for topic in TOPICS:
        added = [{**ours, "headers": []}] if topic == "librdkafka" else []
        for isolation in ("read_uncommitted", "read_committed"):
            assert consumed[topic][isolation] == kafkas_data.consumed[topic][isolation] + added


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()

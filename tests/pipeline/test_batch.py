"""A topic into a DataFrame: over the wire by `read_topic`, and from the segment files by the `barnabas` format."""

import time
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.pipeline import read_topic
from barnabas.pipeline.errors import PipelineError
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.spark

PARTITIONS = 2
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
BASE_TIME = int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker with the topic `numbers`: 100 records of each codec, then 20 that are aborted and 20 that are not."""
    with BrokerProcess(tmp_path_factory.mktemp("data")) as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        admin.create_topics([NewTopic("numbers", PARTITIONS, 1)])["numbers"].result(60)
        number = 0
        for codec in CODECS:
            producer = Producer({"bootstrap.servers": process.bootstrap, "compression.type": codec})
            for _ in range(100):
                produce(producer, number)
                number += 1
            assert producer.flush(60) == 0
        producer = Producer({"bootstrap.servers": process.bootstrap, "transactional.id": "t"})
        producer.init_transactions(60)
        for aborted in (True, False):
            producer.begin_transaction()
            for _ in range(20):
                produce(producer, number)
                number += 1
            assert producer.flush(60) == 0
            producer.abort_transaction(60) if aborted else producer.commit_transaction(60)
        yield process


def produce(producer: Producer, number: int) -> None:
    producer.produce(
        "numbers",
        key=None if number % 7 == 0 else b"key %d" % number,
        value=b"%d" % number,
        partition=number % PARTITIONS,
        headers=[("number", b"%d" % number), ("none", None)] if number % 3 == 0 else None,
        timestamp=BASE_TIME + number * 1000,
    )


COMMITTED = [number for number in range(540) if not 500 <= number < 520]


def numbers(frame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def rows(frame) -> list[tuple]:
    chosen = frame.select("partition", "offset", "key", "value", "topic", "timestamp", "timestampType", "headers")
    return sorted(tuple(row) for row in chosen.collect())


def test_a_topic_in_one_call(spark, broker):
    assert numbers(read_topic(spark, "numbers", bootstrap=broker.bootstrap)) == COMMITTED


def test_the_files_say_the_same_as_the_broker_while_it_runs(spark, broker):
    by_wire = read_topic(spark, "numbers", bootstrap=broker.bootstrap, headers=True)
    from_files = spark.read.format("barnabas").option("includeHeaders", True).load(str(broker.data))
    assert from_files.schema == by_wire.schema
    assert rows(from_files) == rows(by_wire)


def test_the_files_with_what_was_aborted(spark, broker):
    frame = spark.read.format("barnabas").option("isolationLevel", "read_uncommitted").load(str(broker.data))
    options = {"kafka.isolation.level": "read_uncommitted"}
    assert numbers(frame) == list(range(540))
    assert numbers(read_topic(spark, "numbers", bootstrap=broker.bootstrap, options=options)) == list(range(540))


def test_only_some_columns(spark, broker):
    frame = spark.read.format("barnabas").schema("offset long, partition int").load(str(broker.data))
    assert frame.columns == ["offset", "partition"]
    assert frame.where("partition = 1").count() == len(COMMITTED) // PARTITIONS


def test_a_wrong_option_is_a_sentence(spark, broker):
    with pytest.raises(Exception, match="has no topic nothing"):
        spark.read.format("barnabas").option("subscribe", "nothing").load(str(broker.data)).count()


def test_a_range_of_offsets(spark, broker):
    frame = read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=10, end={0: 20, 1: 12})
    expected = [PARTITIONS * offset for offset in range(10, 20)] + [PARTITIONS * offset + 1 for offset in (10, 11)]
    assert numbers(frame) == sorted(expected)


def test_offsets_that_are_not_there_become_the_nearest(spark, broker):
    assert numbers(read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=0, end=10**9)) == COMMITTED
    assert numbers(read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=10**9)) == []


def test_a_range_of_time(spark, broker):
    start = datetime.fromtimestamp(BASE_TIME / 1000, UTC) + timedelta(seconds=100)
    frame = read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=start, end=start + timedelta(seconds=10))
    assert numbers(frame) == list(range(100, 110))
    later = start + timedelta(days=1)
    assert numbers(read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=later)) == []


def test_what_is_missing_is_a_sentence(spark, broker):
    with pytest.raises(PipelineError, match=rf"{broker.bootstrap} has no topic absent; it has: numbers"):
        read_topic(spark, "absent", bootstrap=broker.bootstrap)
    with pytest.raises(PipelineError, match="no time zone"):
        read_topic(spark, "numbers", bootstrap=broker.bootstrap, start=datetime(2020, 1, 1))
    with pytest.raises(PipelineError, match="starting: latest is neither earliest"):
        read_topic(spark, "numbers", bootstrap=broker.bootstrap, start="latest")


def test_no_broker_is_a_sentence(spark, monkeypatch):
    monkeypatch.setattr("barnabas.pipeline.batch.SECONDS_TO_ANSWER", 0.5)
    with pytest.raises(PipelineError, match=r"no broker answers at 127\.0\.0\.1:1 .*is it running\?"):
        read_topic(spark, "numbers", bootstrap="127.0.0.1:1")

"""Kafka's own command-line tools, unchanged: they write, read and measure."""

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.java

NOW = int(time.time() * 1000)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("data")) as process:
        yield process


def tool(broker: BrokerProcess, name: str, *arguments: str, input: str | None = None) -> str:
    return run_tool(name, "--bootstrap-server", broker.bootstrap, *arguments, input=input).stdout


def test_console_producer_and_console_consumer(broker: BrokerProcess):
    lines = ["von:Klamm\tkey\tvalue", "von:Klamm,an:K.\tkey\tanother value", "von:nobody\tkey\tnull"]
    parsed = ("parse.headers=true", "parse.key=true", "null.marker=null")
    reading = [part for each in parsed for part in ("--reader-property", each)]
    tool(broker, "kafka-console-producer", "--topic", "console", *reading, input="\n".join(lines))

    printed = ("print.headers=true", "print.key=true", "null.literal=null", "print.offset=true")
    formatting = [part for each in printed for part in ("--formatter-property", each)]
    where = ("--topic", "console", "--partition", "0", "--offset", "1", "--max-messages", "2")
    found = tool(broker, "kafka-console-consumer", *where, *formatting)

    assert found.splitlines() == [f"Offset:{offset}\t{lines[offset]}" for offset in (1, 2)]


def test_console_consumer_in_a_group(broker: BrokerProcess):
    write(broker, "grouped", [b"first", b"second"])

    options = ("--topic", "grouped", "--group", "console", "--from-beginning", "--max-messages", "2")
    found = tool(broker, "kafka-console-consumer", *options)

    assert found.splitlines() == ["first", "second"]


def test_get_offsets(broker: BrokerProcess):
    create_topic(broker, "counted", partitions=3)
    write(broker, "counted", [b"first", b"second"], partition=0)
    write(broker, "counted", [b"first"], partition=2)

    latest = tool(broker, "kafka-get-offsets", "--topic", "counted")
    assert latest.splitlines() == ["counted:0:2", "counted:1:0", "counted:2:1"]
    at_a_time = tool(broker, "kafka-get-offsets", "--topic-partitions", "counted:0", "--time", str(NOW + 1))
    assert at_a_time.splitlines() == ["counted:0:1"]


def test_producer_perf_test_and_consumer_perf_test(broker: BrokerProcess):
    create_topic(broker, "measured", partitions=2)

    options = ("--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    report = tool(broker, "kafka-producer-perf-test", "--topic", "measured", *options)
    assert re.match(r"5000 records sent, \S+ records/sec", report.splitlines()[-1])

    report = tool(broker, "kafka-consumer-perf-test", "--topic", "measured", "--num-records", "5000", "--hide-header")
    consumed = report.split(", ")[4]
    assert consumed == "5000"


def create_topic(broker: BrokerProcess, name: str, partitions: int) -> None:
    with Wire("127.0.0.1", broker.port) as wire:
        answer = wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic(name, partitions)), 7)
    assert [created.error_code for created in answer.topics] == [0]


def write(broker: BrokerProcess, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Write records, a millisecond between them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition, timestamp=NOW + number)
    assert producer.flush(60) == 0

"""What `barnabas certs init` prints works word for word, for the broker and for each library. Only the port differs."""

import ast
import subprocess
import sys

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The sections, by their titles."""
    folder = tmp_path_factory.mktemp("certs init")
    command = [sys.executable, "-m", "barnabas", "certs", "init", str(folder / "certs")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    sections = (section.partition("\n") for section in done.stdout.removeprefix("# ").split("\n# "))
    return {title: text for title, _, text in sections}


@pytest.fixture(scope="module")
def broker(printed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("broker")
    ((title, text),) = [(title, text) for title, text in printed.items() if title.startswith("the broker")]
    command = title.removeprefix("the broker: barnabas serve ").removesuffix(" with these settings").split()
    assert command == ["--listen", "SSL://127.0.0.1:9093"]
    settings = folder / "server.properties"
    settings.write_text(text)
    with BrokerProcess(folder / "data", "--listen", "SSL://127.0.0.1:0", str(settings)) as process:
        yield process


@pytest.fixture
def for_library(printed, broker):
    def section(title):
        assert "localhost:9093" in printed[title]
        return printed[title].replace("localhost:9093", f"localhost:{broker.port}")

    return section


def test_confluent_kafka(for_library):
    lines = for_library("librdkafka and confluent-kafka").split("\n")
    producer = Producer(dict(line.split("=", 1) for line in lines if line))
    producer.produce("confluent", b"x")
    assert producer.flush(60) == 0


def test_kafka_python(for_library):
    with kafka.KafkaProducer(**ast.literal_eval(for_library("kafka-python"))) as producer:
        assert producer.send("kafka-python", b"x").get(60).offset == 0


async def test_aiokafka(for_library):
    *imports, settings = for_library("aiokafka").strip().split("\n")
    names = {}
    exec("\n".join(imports), names)
    async with AIOKafkaProducer(**eval(settings, names)) as producer:
        await producer.send_and_wait("aiokafka", b"x")


@pytest.mark.java
def test_java(for_library, broker, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text(for_library("Java"))
    reach = ["--bootstrap-server", f"localhost:{broker.port}", "--command-config", str(config)]
    run_tool("kafka-topics", *reach, "--create", "--topic", "java")
    assert "java" in run_tool("kafka-topics", *reach, "--list").stdout.split()

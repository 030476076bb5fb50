"""Stock clients over TLS, with and without certificates of their own; TLS between brokers; the wrong protocol."""

import resource
import socket
import ssl
from contextlib import ExitStack

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tests.integration.clients.interface import wait_until
from tests.support import certificates
from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess

RECORDS = [f"record {n}".encode() * 50 for n in range(200)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates.Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(files, tmp_path_factory):
    """Its listener has TLS and requires client certificates."""
    settings = {**files.server_settings, "ssl.client.auth": "required", "num.partitions": "1"}
    data = tmp_path_factory.mktemp("data")
    with BrokerProcess(data, "--listen", "SSL://127.0.0.1:0", settings=settings) as process:
        yield process


def test_kafka_python(broker, files):
    kafka_python_produces_and_consumes(broker, files, "kafka-python")


def kafka_python_produces_and_consumes(broker, files, topic):
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(files.ca),
        "ssl_certfile": str(files.client),
    }
    producer = kafka.KafkaProducer(**settings)
    for record in RECORDS:
        producer.send(topic, record)
    producer.flush(60)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=60_000)
    assert [next(consumer).value for _ in RECORDS] == RECORDS
    consumer.close()


def test_confluent_kafka(broker, files):
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.ca),
        "ssl.certificate.location": str(files.client_certificate),
        "ssl.key.location": str(files.client_key),
    }
    producer = Producer(settings)
    for record in RECORDS:
        producer.produce("confluent", record)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": "tls", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    received = []
    while len(received) < len(RECORDS):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        received.append(message.value())
    consumer.close()
    assert received == RECORDS


async def test_aiokafka(broker, files):
    context = ssl.create_default_context(cafile=str(files.ca))
    context.load_cert_chain(str(files.client))
    settings = {"bootstrap_servers": broker.bootstrap, "security_protocol": "SSL", "ssl_context": context}
    async with AIOKafkaProducer(**settings) as producer:
        for record in RECORDS:
            await producer.send("aiokafka", record)
    async with AIOKafkaConsumer("aiokafka", **settings, auto_offset_reset="earliest") as consumer:
        assert [(await consumer.getone()).value for _ in RECORDS] == RECORDS


@pytest.mark.java
def test_kafka_s_own_tools(broker, files, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}\n"
    )
    reach = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
    run_tool("kafka-topics", *reach, "--create", "--topic", "java")
    assert "java" in run_tool("kafka-topics", *reach, "--list").stdout.split()
    lines = "\n".join(f"line {n}" for n in range(50))
    where = ["--bootstrap-server", broker.bootstrap, "--topic", "java", "--command-config", str(config)]
    run_tool("kafka-console-producer", *where, input=lines)
    found = run_tool("kafka-console-consumer", *where, "--from-beginning", "--max-messages", "50").stdout
    assert found.strip() == lines


def test_a_client_without_a_certificate_does_not_get_in(broker, files):
    failures = []
    client = AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(files.ca),
            "error_cb": failures.append,
        }
    )
    while not any(failure.code() == KafkaError._ALL_BROKERS_DOWN for failure in failures):
        client.poll(60)
    wait_until(lambda: "TLS failed: peer did not return a certificate" in broker.log, "the failure in the log")


def test_a_plaintext_client_at_a_tls_port_is_logged(broker):
    failures = []
    client = AdminClient({"bootstrap.servers": broker.bootstrap, "error_cb": failures.append})
    while not any(failure.code() == KafkaError._ALL_BROKERS_DOWN for failure in failures):
        client.poll(60)
    wait_until(lambda: "it does not speak TLS, and this listener does" in broker.log, "the failure in the log")


def test_a_tls_client_at_a_plaintext_port_is_logged(tmp_path, files):
    failures = []
    with BrokerProcess(tmp_path / "data") as plaintext:
        client = AdminClient(
            {
                "bootstrap.servers": plaintext.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": str(files.ca),
                "error_cb": failures.append,
            }
        )
        while not any(failure.code() == KafkaError._ALL_BROKERS_DOWN for failure in failures):
            client.poll(60)
        told = "it looks like TLS, and this listener speaks plaintext"
        wait_until(lambda: told in plaintext.log, "the failure in the log")


def test_ten_thousand_half_open_handshakes_are_in_nobodys_way(broker, files):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10_500 if hard == resource.RLIM_INFINITY else min(10_500, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    hello = b"\x16\x03\x01\x02\x00\x01\x00"
    with ExitStack() as half_open:
        for _ in range(wanted - 500):
            sock = half_open.enter_context(socket.create_connection(("127.0.0.1", broker.port), 60))
            sock.sendall(hello)
        before = broker.log.count("connection closed")
        kafka_python_produces_and_consumes(broker, files, "during-half-open-handshakes")
        assert broker.log.count("connection closed") == before  # all of them were open meanwhile


def test_three_brokers_that_speak_tls_with_each_other(tmp_path, files):
    settings = {**files.server_settings, "ssl.client.auth": "required"}
    arguments = ("--listen", "SSL://127.0.0.1:0", "--brokers", "3")
    with BrokerProcess(tmp_path / "data", *arguments, settings=settings) as cluster:
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": str(files.ca),
                "ssl.certificate.location": str(files.client_certificate),
                "ssl.key.location": str(files.client_key),
                "acks": "all",
            }
        )
        failed = []
        for record in RECORDS:
            producer.produce("replicated", record, on_delivery=lambda error, _: failed.append(error) if error else None)
        assert producer.flush(60) == 0
        assert failed == []
        (topic,) = list(producer.list_topics("replicated", timeout=60).topics.values())
        assert all(len(partition.isrs) == 3 for partition in topic.partitions.values())


def test_a_broker_without_a_usable_certificate_does_not_start(tmp_path):
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "nothing.pem")}
    process = BrokerProcess(tmp_path / "data", "--listen", "SSL://127.0.0.1:0", settings=settings)
    with pytest.raises(RuntimeError, match=r"listener SSL: ssl\.keystore\.location=.* cannot be read: No such file"):
        process.start()

"""A secured broker in one line, and clients whose settings just work."""

import os
import socket
import ssl
import stat
import subprocess
import sys
from collections import Counter

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from barnabas import Barnabas, BarnabasError
from barnabas.client.errors import NotAuthenticated
from barnabas.client.security import Security, authenticate
from barnabas.client.wire import Wire
from barnabas.client_settings import as_properties
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.support.apache_kafka import run_tool

PROTOCOLS = ["ssl", "sasl_plaintext", "sasl_ssl"]


@pytest.fixture(scope="module", params=PROTOCOLS)
def broker(request):
    users = {"alice": 'a "secret"\\, yes', "bob": "b"} if request.param != "ssl" else None
    with Barnabas(security=request.param, users=users) as broker:
        yield broker


def test_confluent_kafka(broker):
    producer = Producer(broker.client_settings("confluent"))
    producer.produce("confluent", b"x")
    assert producer.flush(60) == 0


def test_kafka_python(broker):
    producer = kafka.KafkaProducer(**broker.client_settings("kafka-python"))
    assert producer.send("kafka-python", b"x").get(60).offset == 0
    producer.close()


async def test_aiokafka(broker):
    settings = broker.client_settings("aiokafka")
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("aiokafka", b"x")
    async with AIOKafkaConsumer("aiokafka", **settings, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"x"


@pytest.mark.java
def test_java(broker, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text(as_properties(broker.client_settings("java")))
    reach = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)]
    run_tool("kafka-topics", *reach, "--create", "--topic", "java")
    assert "java" in run_tool("kafka-topics", *reach, "--list").stdout.split()


@pytest.mark.parametrize("library", ["java", "confluent"])
def test_the_command_with_a_client_s_settings(broker, tmp_path, library):
    config = tmp_path / "client.properties"
    config.write_text(as_properties(broker.client_settings(library)))

    def barnabas(*arguments, input=None):
        command = [sys.executable, "-m", "barnabas", *arguments, "--client-config", str(config)]
        return subprocess.run(command, input=input, capture_output=True, text=True, timeout=60)

    topic = f"command-{library}"
    assert barnabas("topics", "create", topic).returncode == 0
    lines = "".join(f"line {n} {'x' * 500}\n" for n in range(500))
    assert barnabas("produce", topic, input=lines).returncode == 0
    consumed = barnabas("consume", topic, "--from-beginning", "-c", "500")
    assert (consumed.stdout, consumed.returncode) == (lines, 0), consumed.stderr


@pytest.mark.parametrize("library", ["java", "confluent"])
def test_conformance_with_a_client_s_settings(broker, tmp_path, library):
    config = tmp_path / "client.properties"
    config.write_text(as_properties(broker.client_settings(library)))
    command = [sys.executable, "-m", "barnabas", "conformance", "--only", "framing", "--only", "api-versions"]
    done = subprocess.run([*command, "--client-config", str(config)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    without = [*command, "-b", broker.bootstrap_servers, "--timeout", "5s"]
    assert subprocess.run(without, capture_output=True, timeout=120).returncode == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_every_user_by_every_mechanism(mechanism):
    with Barnabas(security="sasl_plaintext", users={"alice": "a", "bob": "b"}) as broker:
        for user in broker.users:
            admin = AdminClient(broker.client_settings("confluent", user=user, mechanism=mechanism))
            assert admin.list_topics(timeout=60).brokers


def test_a_user_is_generated_and_others_are_unknown():
    with Barnabas(security="sasl_plaintext") as broker:
        assert list(broker.users) == ["admin"]
        assert AdminClient(broker.client_settings("confluent")).list_topics(timeout=60).brokers
        with pytest.raises(BarnabasError, match="there is no user 'alice', only admin"):
            broker.client_settings("confluent", user="alice")


def test_the_wrong_password_is_refused_to_the_command_in_a_sentence(tmp_path):
    with Barnabas(security="sasl_plaintext", users={"alice": "right"}) as broker:
        config = tmp_path / "client.properties"
        config.write_text(
            as_properties(broker.client_settings("java") | {"sasl.username": "alice", "sasl.password": "no"})
        )
        command = [sys.executable, "-m", "barnabas", "topics", "list", "--client-config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in done.stderr
        assert "Traceback" not in done.stderr


def test_passwords_are_on_no_command_line_and_in_no_log():
    with Barnabas(security="sasl_ssl", users={"alice": "very-s3cret"}) as broker:
        assert AdminClient(broker.client_settings("confluent")).list_topics(timeout=60).brokers
        with open(f"/proc/{broker.pid}/cmdline", "rb") as file:
            assert b"very-s3cret" not in file.read()
        assert "very-s3cret" not in broker.log
        assert "very-s3cret" not in str(list(broker.journal.entries()))


def test_restarted_it_has_the_same_certificates_and_users(tmp_path):
    with Barnabas(security="sasl_ssl", users={"alice": "a"}, data=tmp_path / "data") as broker:
        before = (tmp_path / "data" / "certs" / "ca.pem").read_bytes()
        broker.restart()
        assert (tmp_path / "data" / "certs" / "ca.pem").read_bytes() == before
        assert AdminClient(broker.client_settings("confluent")).list_topics(timeout=60).brokers


def test_the_journal_and_faults_know_who_it_is():
    with Barnabas(security="sasl_plaintext", users={"alice": "a", "bob": "b"}) as broker:
        broker.create_topic("orders")
        with broker.faults.add(api="Produce", error="TOPIC_AUTHORIZATION_FAILED", principal="User:bob"):
            failed = []
            for user in broker.users:
                producer = Producer(broker.client_settings("confluent", user=user))
                producer.produce("orders", b"x", on_delivery=lambda error, _, user=user: failed.append((user, error)))
                assert producer.flush(60) == 0
        assert [(user, error is None) for user, error in failed] == [("alice", True), ("bob", False)]
        principals = {entry["principal"] for entry in broker.journal.entries(api="Produce")}
        assert principals == {"User:alice", "User:bob"}


def test_three_brokers():
    with Barnabas(security="sasl_ssl", users={"alice": "a"}, brokers=3) as cluster:
        producer = Producer({**cluster.client_settings("confluent"), "acks": "all"})
        producer.produce("replicated", b"x")
        assert producer.flush(60) == 0
        (topic,) = producer.list_topics("replicated", timeout=60).topics.values()
        assert all(len(partition.isrs) == 3 for partition in topic.partitions.values())


@pytest.mark.kafka(security="sasl_ssl", users={"alice": "secret"})
def test_a_mark_is_enough(kafka_broker, kafka_topic):
    producer = Producer(kafka_broker.client_settings("confluent", user="alice"))
    producer.produce(kafka_topic, b"x")
    assert producer.flush(60) == 0


def test_keys_are_private(tmp_path):
    command = [sys.executable, "-m", "barnabas", "certs", "init", str(tmp_path / "certs"), "--host", "kafka.example"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    for word in ("ssl.keystore.location=", "ssl.ca.location=", "ssl.truststore.location=", "ssl_cafile", "ssl_context"):
        assert word in printed
    for name in ("ca-key.pem", "server.pem", "client.pem"):
        assert stat.S_IMODE(os.stat(tmp_path / "certs" / name).st_mode) == 0o600


def test_serve_generates_a_user_and_prints_it(tmp_path):
    command = [
        sys.executable,
        "-m",
        "barnabas",
        "serve",
        "--secure",
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            words = process.stdout.readline().split()
            assert words[:3] == ["barnabas", "user", "admin"]
            folder = process.stdout.readline().split()[-1]
            address = process.stdout.readline().split()[-1]
            settings = {
                "bootstrap.servers": address,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": f"{folder}/ca.pem",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "admin",
            }
            assert AdminClient({**settings, "sasl.password": words[4]}).list_topics(timeout=60).brokers
            failures = []
            wrong = AdminClient({**settings, "sasl.password": "wrong", "error_cb": failures.append})
            while not any(failure.code() == KafkaError._AUTHENTICATION for failure in failures):
                wrong.poll(60)
        finally:
            process.terminate()


def test_failed_authentications_are_counted():
    with Barnabas(security="sasl_ssl", users={"alice": "right"}) as broker:
        assert broker.state["failed_authentications"] == []
        tls = ssl.create_default_context(cafile=broker.client_settings("confluent")["ssl.ca.location"])
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "PLAIN"):
            with Wire("127.0.0.1", broker.port, tls=tls) as wire, pytest.raises(NotAuthenticated):
                authenticate(wire, Security(tls, mechanism, "alice", "wrong"))
        with socket.create_connection(("127.0.0.1", broker.port), 20) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(100) == b""
        counts = {each["mechanism"]: each["count"] for each in broker.state["failed_authentications"]}
        assert counts == {"PLAIN": 2, "SCRAM-SHA-256": 1, "TLS": 1}


def test_a_fault_makes_a_login_or_a_right_fail():
    with Barnabas(security="sasl_plaintext", users={"alice": "right", "bob": "right"}, acls=[]) as broker:
        login = Security(None, "PLAIN", "alice", "right")
        fault = broker.faults.add(api="SaslAuthenticate", error="SASL_AUTHENTICATION_FAILED", times=1)
        with Wire("127.0.0.1", broker.port) as wire, pytest.raises(NotAuthenticated):
            authenticate(wire, login)
        assert fault.hits == 1
        broker.faults.add(api="DescribeCluster", principal="User:alice", error="CLUSTER_AUTHORIZATION_FAILED", times=1)
        errors = []
        for user in ("bob", "alice"):
            with Wire("127.0.0.1", broker.port) as wire:
                authenticate(wire, login._replace(user=user))
                errors.append(
                    wire.ask(
                        ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(include_cluster_authorized_operations=False), 1
                    ).error_code
                )
        assert errors == [0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        entries = broker.journal.entries(api="DescribeCluster")
        assert [each["principal"] for each in entries] == ["User:bob", "User:alice"]


@pytest.mark.parametrize("library", ["confluent", pytest.param("java", marks=pytest.mark.java)])
def test_clients_authenticate_again_on_the_same_connection(library, tmp_path):
    with Barnabas({"connections.max.reauth.ms": "1000"}, security="sasl_plaintext", users={"alice": "a"}) as broker:
        broker.create_topic("orders")
        if library == "java":
            config = tmp_path / "client.properties"
            config.write_text(as_properties(broker.client_settings("java")))
            reach = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)]
            work = ["--topic", "orders", "--num-records", "300", "--record-size", "10", "--throughput", "100"]
            assert "300 records sent" in run_tool("kafka-producer-perf-test", *reach, *work).stdout
        else:
            errors = []
            producer = Producer(broker.client_settings("confluent"))
            while most_authentications_of_a_connection(broker) < 3:
                producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error) if error else None)
                assert producer.flush(60) == 0
            assert errors == []
        assert most_authentications_of_a_connection(broker) >= 2
        assert broker.state["failed_authentications"] == []


def most_authentications_of_a_connection(broker):
    """A connection says which mechanism it uses each time before it authenticates."""
    return max(Counter(each["peer"] for each in broker.journal.entries(api="SaslHandshake")).values(), default=0)

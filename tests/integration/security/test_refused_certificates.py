"""Brokers whose certificates are for another host or have expired: clients of every library refuse them."""

import ssl

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaTimeoutError

from tests.integration.clients.interface import wait_until
from tests.support import certificates
from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return str(certificates.Files(tmp_path_factory.mktemp("certificates")).ca)


def serving(issued, folder):
    settings = certificates.server_settings(issued)
    return BrokerProcess(folder / "data", "--listen", "SSL://127.0.0.1:0", settings=settings)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A broker on 127.0.0.1 whose certificate is for kafka.example."""
    issued = certificates.authority().issue("broker", ["kafka.example"])
    with serving(issued, tmp_path_factory.mktemp("elsewhere")) as process:
        yield process


@pytest.fixture(scope="module")
def expired(tmp_path_factory):
    issued = certificates.authority().issue("broker", certificates.LOCAL_HOSTS, days=1, since_days=3)
    with serving(issued, tmp_path_factory.mktemp("expired")) as process:
        yield process


@pytest.fixture(scope="module", params=["elsewhere", "expired"])
def refused(request):
    return request.getfixturevalue(request.param)


def test_confluent_kafka(refused, ca):
    failures = []
    settings = {"bootstrap.servers": refused.bootstrap, "security.protocol": "SSL", "ssl.ca.location": ca}
    client = AdminClient({**settings, "error_cb": failures.append})
    while not any(failure.code() == KafkaError._ALL_BROKERS_DOWN for failure in failures):
        client.poll(60)
    assert any("certificate verify failed" in failure.str() for failure in failures)
    told = "the other side does not accept the certificate"
    wait_until(lambda: told in refused.log, "the failure in the log")


def test_kafka_python(refused, ca, caplog):
    with pytest.raises(KafkaTimeoutError):
        kafka.KafkaProducer(
            bootstrap_servers=refused.bootstrap, security_protocol="SSL", ssl_cafile=ca, bootstrap_timeout_ms=500
        )
    assert "certificate verify failed" in caplog.text


async def test_aiokafka(refused, ca, caplog):
    context = ssl.create_default_context(cafile=ca)
    producer = AIOKafkaProducer(
        bootstrap_servers=refused.bootstrap, security_protocol="SSL", ssl_context=context, request_timeout_ms=5000
    )
    with pytest.raises(KafkaConnectionError):
        await producer.start()
    await producer.stop()
    assert "certificate verify failed" in caplog.text


def java(broker, ca, folder, more=""):
    config = folder / "client.properties"
    config.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n{more}")
    reach = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
    return run_tool("kafka-topics", *reach, "--list", check=False)


@pytest.mark.java
def test_java(refused, ca, tmp_path):
    done = java(refused, ca, tmp_path)
    assert done.returncode != 0
    assert "SSL handshake failed" in done.stdout + done.stderr


def test_the_name_alone_was_the_reason(elsewhere, ca):
    """With the check of host names off, the same clients come in."""
    settings = {"bootstrap.servers": elsewhere.bootstrap, "security.protocol": "SSL", "ssl.ca.location": ca}
    client = AdminClient({**settings, "ssl.endpoint.identification.algorithm": "none"})
    assert client.list_topics(timeout=60).brokers
    settings = {"security_protocol": "SSL", "ssl_cafile": ca, "ssl_check_hostname": False}
    kafka.KafkaProducer(bootstrap_servers=elsewhere.bootstrap, **settings).close()


@pytest.mark.java
def test_the_name_alone_was_the_reason_for_java(elsewhere, ca, tmp_path):
    done = java(elsewhere, ca, tmp_path, "ssl.endpoint.identification.algorithm=\n")
    assert done.returncode == 0, done.stderr

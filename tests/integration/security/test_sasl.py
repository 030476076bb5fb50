"""Stock clients with passwords: PLAIN and SCRAM, over TLS and without, and between brokers."""

import ssl

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.integration.clients.interface import wait_until
from tests.support import certificates
from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess

RECORDS = [f"record {n}".encode() * 50 for n in range(200)]
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
USERS = {"PLAIN": ("admin", "s3cret"), "SCRAM-SHA-256": ("alice", "p4ss"), "SCRAM-SHA-512": ("alice", "p4ss")}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates.Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(files, tmp_path_factory):
    """Its listener has TLS and SASL. There is an administrator, who has created a user."""
    settings = {
        **files.server_settings,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_admin="s3cret";',
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with BrokerProcess(
        tmp_path_factory.mktemp("data"), "--listen", "SASL_SSL://127.0.0.1:0", settings=settings
    ) as process:
        admin = AdminClient(confluent(process, files, "PLAIN"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), b"p4ss")
            admin.alter_user_scram_credentials([upsertion])["alice"].result(60)
        yield process


def confluent(broker, files, mechanism, user=None, password=None):
    known = USERS[mechanism]
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(files.ca),
        "sasl.mechanism": mechanism,
        "sasl.username": user or known[0],
        "sasl.password": password or known[1],
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka(broker, files, mechanism):
    settings = confluent(broker, files, mechanism)
    topic = f"confluent-{mechanism}"
    producer = Producer(settings)
    for record in RECORDS:
        producer.produce(topic, record)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received = []
    while len(received) < len(RECORDS):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        received.append(message.value())
    consumer.close()
    assert received == RECORDS


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker, files, mechanism):
    user, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(files.ca),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    topic = f"kafka-python-{mechanism}"
    producer = kafka.KafkaProducer(**settings)
    for record in RECORDS:
        producer.send(topic, record)
    producer.flush(60)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=60_000)
    assert [next(consumer).value for _ in RECORDS] == RECORDS
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(broker, files, mechanism):
    user, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=str(files.ca)),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    topic = f"aiokafka-{mechanism}"
    async with AIOKafkaProducer(**settings) as producer:
        for record in RECORDS:
            await producer.send(topic, record)
    async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
        assert [(await consumer.getone()).value for _ in RECORDS] == RECORDS


@pytest.mark.java
def test_kafka_s_own_tools_make_users_and_are_users(broker, files, tmp_path):
    def properties(name, mechanism, module, user, password):
        path = tmp_path / f"{name}.properties"
        path.write_text(
            "security.protocol=SASL_SSL\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
            f"sasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
        )
        return str(path)

    admin = properties("admin", "PLAIN", PLAIN_LOGIN, "admin", "s3cret")
    reach = ["--bootstrap-server", broker.bootstrap, "--command-config"]
    user = ["--entity-type", "users", "--entity-name", "jane doe"]
    run_tool(
        "kafka-configs", *reach, admin, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x y]"
    )
    run_tool("kafka-configs", *reach, admin, "--alter", *user, "--add-config", "producer_byte_rate=1000000")
    described = run_tool("kafka-configs", *reach, admin, "--describe", *user).stdout
    assert "Quota configs for user-principal 'jane doe' are producer_byte_rate=1000000.0" in described
    assert "SCRAM credential configs for user-principal 'jane doe' are SCRAM-SHA-256=iterations=8192" in described
    run_tool("kafka-configs", *reach, admin, "--alter", *user, "--delete-config", "producer_byte_rate")
    jane = properties("jane", "SCRAM-SHA-256", SCRAM_LOGIN, "jane doe", "x y")
    run_tool("kafka-topics", *reach, jane, "--create", "--topic", "of-jane")
    assert "of-jane" in run_tool("kafka-topics", *reach, jane, "--list").stdout.split()


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [("PLAIN", "admin", "wrong"), ("SCRAM-SHA-256", "alice", "wrong"), ("SCRAM-SHA-512", "nobody", "p4ss")],
)
def test_a_wrong_password_does_not_get_in(broker, files, mechanism, user, password):
    failures = []
    settings = {**confluent(broker, files, mechanism, user, password), "error_cb": failures.append}
    client = AdminClient(settings)
    while not any(failure.code() == KafkaError._AUTHENTICATION for failure in failures):
        client.poll(60)
    # The client is told before the connection is closed, which is when it is logged.
    wait_until(lambda: f"it failed to authenticate with {mechanism}" in broker.log, "the failure in the log")
    assert "wrong" not in broker.log
    assert "p4ss" not in broker.log


def test_users_are_described_and_deleted(broker, files):
    admin = AdminClient(confluent(broker, files, "PLAIN"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 5000)
    for future in admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", info, b"x")]).values():
        future.result(60)
    described = admin.describe_user_scram_credentials(["bob"])["bob"].result(60)
    assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 5000)
    ]
    bob = confluent(broker, files, "SCRAM-SHA-256", "bob", "x")
    assert AdminClient(bob).list_topics(timeout=60).brokers
    deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    for future in admin.alter_user_scram_credentials([deletion]).values():
        future.result(60)
    with pytest.raises(Exception, match="does not exist"):
        admin.describe_user_scram_credentials(["bob"])["bob"].result(60)
    failures = []
    revoked = AdminClient({**bob, "error_cb": failures.append})
    while not any(failure.code() == KafkaError._AUTHENTICATION for failure in failures):
        revoked.poll(60)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_three_brokers_with_passwords_for_each_other(tmp_path, files, protocol):
    jaas = f'{PLAIN_LOGIN} required username="broker" password="b" user_broker="b" user_admin="s3cret";'
    settings = {
        **files.server_settings,
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": jaas,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    arguments = ("--listen", f"{protocol}://127.0.0.1:0", "--brokers", "3")
    with BrokerProcess(tmp_path / "data", *arguments, settings=settings) as cluster:
        producer = Producer({**confluent(cluster, files, "PLAIN"), "security.protocol": protocol, "acks": "all"})
        for record in RECORDS:
            producer.produce("replicated", record)
        assert producer.flush(60) == 0
        (topic,) = producer.list_topics("replicated", timeout=60).topics.values()
        assert all(len(partition.isrs) == 3 for partition in topic.partitions.values())


def test_a_broker_without_a_login_for_others_says_so(tmp_path):
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_admin="s3cret";',
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with BrokerProcess(tmp_path / "data", "--listen", "SASL_PLAINTEXT://127.0.0.1:0", settings=settings) as alone:
        assert "must have the username and the password of the broker itself" in alone.log
        assert "s3cret" not in alone.log

"""Stock clients with tokens."""

import time

import jwt
import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.broker.security.sasl.test_oauthbearer import RSA, STRANGER, key_set
from tests.integration.clients.interface import wait_until
from tests.support.broker_process import BrokerProcess

HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"


def token(key=RSA, seconds=600):
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + seconds, "iss": "me", "aud": "kafka"}
    return jwt.encode(claims, key, "RS256", {"kid": "one"})


def settings_for(folder):
    (folder / "keys.json").write_text(key_set(one=RSA))
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        HANDLER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/keys.json",
        "sasl.oauthbearer.expected.issuer": "me",
        "sasl.oauthbearer.expected.audience": "kafka",
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    arguments = ("--listen", "SASL_PLAINTEXT://127.0.0.1:0")
    with BrokerProcess(folder / "data", *arguments, settings=settings_for(folder)) as process:
        yield process


def confluent(broker, shown, **more):
    return AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (shown, time.time() + 600, "alice", {}),
            **more,
        }
    )


def test_confluent_kafka(broker):
    client = confluent(broker, token())
    client.poll(0)
    assert client.list_topics(timeout=60).brokers


def test_kafka_python(broker):
    class Provider(AbstractTokenProvider):
        def token(self):
            return token()

    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    )
    assert producer.send("kafka-python", b"x").get(60).offset == 0
    producer.close()


async def test_aiokafka(broker):
    class Provider(AioTokenProvider):
        async def token(self):
            return token()

    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    ) as producer:
        await producer.send_and_wait("aiokafka", b"x")


@pytest.mark.parametrize("shown", [token(STRANGER), token(seconds=-600)], ids=["another key", "expired"])
def test_a_token_that_is_not_accepted_does_not_get_in(broker, shown):
    failures = []
    client = confluent(broker, shown, error_cb=failures.append)
    while not any(failure.code() == KafkaError._AUTHENTICATION for failure in failures):
        client.poll(60)
    wait_until(lambda: "it failed to authenticate with OAUTHBEARER" in broker.log, "the failure in the log")
    assert shown not in broker.log


def test_three_brokers_with_tokens_for_each_other(tmp_path):
    """The file may hold another token later, because tokens expire."""
    file = tmp_path / "broker.jwt"
    file.write_text(token(STRANGER))
    settings = {
        **settings_for(tmp_path),
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"file://{file}",
        "connection.failed.authentication.delay.ms": "0",
    }
    arguments = ("--listen", "SASL_PLAINTEXT://127.0.0.1:0", "--brokers", "3")
    with BrokerProcess(tmp_path / "data", *arguments, settings=settings) as cluster:
        wait_until(lambda: "it failed to authenticate with OAUTHBEARER" in cluster.log, "a broker that is not let in")
        file.write_text(token() + "\n")
        client = confluent(cluster, token())
        client.poll(0)
        (created,) = client.create_topics([NewTopic("replicated", 1, 3)]).values()
        created.result(60)

        def replicas_in_sync():
            (partition,) = client.list_topics("replicated", timeout=60).topics["replicated"].partitions.values()
            return len(partition.isrs)

        wait_until(lambda: replicas_in_sync() == 3, "all replicas in sync")
        assert token() not in cluster.log

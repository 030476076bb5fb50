"""Delegation tokens with Kafka's own tool and Java's client, on one broker and on three."""

import re

import pytest

from tests.support.apache_kafka import run_tool
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.java

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
OF_ALICE = ("--describe", "--owner-principal", "User:alice")


@pytest.fixture(scope="module", params=[1, 3])
def broker(request, tmp_path_factory):
    users = 'username="admin" password="x" user_admin="x" user_alice="x" user_bob="x"'
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_LOGIN} required {users};",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "delegation.token.secret.key": "the-key-of-the-tokens",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    listen = ("--listen", "SASL_PLAINTEXT://127.0.0.1:0", "--brokers", str(request.param))
    with BrokerProcess(tmp_path_factory.mktemp("data"), *listen, settings=settings) as broker:
        yield broker


@pytest.fixture
def tool(broker, tmp_path):
    def run(name, login, *arguments, mechanism="PLAIN", check=True):
        config = tmp_path / "client.properties"
        config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n")
        reach = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
        return run_tool(name, *reach, *arguments, check=check)

    return run


def as_user(name):
    return f'{PLAIN_LOGIN} required username="{name}" password="x";'


def test_kafka_s_tool_and_a_client_that_logs_in_with_a_token(broker, tool):
    tool(
        "kafka-acls", as_user("admin"), "--add", "--allow-principal", "User:alice", "--operation", "All", "--topic", "*"
    )
    created = tool(
        "kafka-delegation-tokens",
        as_user("alice"),
        *("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"),
    ).stdout
    token_id, hmac = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice\s+User:alice\s+\[?User:bob", created, re.M).groups()
    for user in ("alice", "bob"):
        described = tool(
            "kafka-delegation-tokens", as_user(user), "--describe", "--owner-principal", "User:alice"
        ).stdout
        assert hmac in described
    renewed = tool("kafka-delegation-tokens", as_user("bob"), "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew operation" in renewed.stdout

    by_token = f'{SCRAM_LOGIN} required username="{token_id}" password="{hmac}" tokenauth="true";'
    tool("kafka-topics", by_token, "--create", "--topic", "of-a-token", mechanism="SCRAM-SHA-256")
    assert "of-a-token" in tool("kafka-topics", by_token, "--list", mechanism="SCRAM-SHA-256").stdout.split()
    refused = tool("kafka-delegation-tokens", by_token, "--describe", mechanism="SCRAM-SHA-256", check=False)
    assert refused.returncode != 0

    ended = tool("kafka-delegation-tokens", as_user("alice"), "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in ended.stdout
    assert hmac not in tool("kafka-delegation-tokens", as_user("alice"), *OF_ALICE).stdout
    late = tool("kafka-topics", by_token, "--list", mechanism="SCRAM-SHA-256", check=False)
    assert late.returncode != 0
    assert hmac not in broker.log
    assert "the-key-of-the-tokens" not in broker.log


def test_a_token_for_another_user_needs_a_right(tool):
    ask = ("--create", "--max-life-time-period", "60000", "--owner-principal", "User:alice")
    refused = tool("kafka-delegation-tokens", as_user("bob"), *ask, check=False)
    assert "Delegation Token authorization failed" in refused.stdout + refused.stderr
    grant = ("--add", "--allow-principal", "User:bob", "--operation", "CreateTokens", "--user-principal", "User:alice")
    tool("kafka-acls", as_user("admin"), *grant)
    created = tool("kafka-delegation-tokens", as_user("bob"), *ask).stdout
    assert re.search(r"User:alice\s+User:bob", created)

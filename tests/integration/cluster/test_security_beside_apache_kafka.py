"""Access rules and delegation tokens in a cluster of Apache Kafka 3.9.1 and Barnabas: what one creates, both know."""

from __future__ import annotations

import base64

import pytest

from barnabas.client.requests.acls import Rule, create_acls, delete_acls, describe_acls, rule
from barnabas.client.requests.tokens import create_token, describe_tokens, expire_token, renew_token
from barnabas.client.security import Security, authenticate
from barnabas.client.wire import Wire
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.support.cluster import Cluster, not_yet

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CLIENT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.internal.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="secret" user_admin="secret" user_alice="secret";'
    ),
    "listener.name.internal.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "delegation.token.secret.key": "a key",
    "delegation.token.expiry.check.interval.ms": "200",
}
ALICE = Security(None, "PLAIN", "alice", "secret")
RULES = [
    rule("User:alice", AclOperation.READ, ResourceType.TOPIC, "orders"),
    rule("User:alice", AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "orders", host="10.0.0.1"),
    rule("User:*", AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx-", pattern_type=PatternType.PREFIXED),
    rule("User:bob", AclOperation.ALL, ResourceType.GROUP, "*", permission=PermissionType.DENY),
]


@pytest.fixture(scope="module")
def cluster():
    if reason := not_yet():
        pytest.skip(reason)
    with Cluster(["kafka", "barnabas"], SETTINGS) as cluster:
        yield cluster


def ask(broker, key, request):
    host, _, port = broker.address.rpartition(":")
    with Wire(host, int(port)) as wire:
        return wire.ask(key, request, 3)


def rules_at(broker, count):
    """What a broker knows; asked again until there are this many rules, because the other one learns about them
    later."""
    while True:
        answer = ask(broker, ApiKey.DESCRIBE_ACLS, describe_acls(Rule()))
        assert not answer.error_code
        found = {
            Rule(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for r in answer.resources
            for a in r.acls
        }
        if len(found) == count:
            return found


def pair(cluster, maker):
    by_make = {broker.make: broker for broker in cluster.brokers}
    return by_make[maker], by_make["barnabas" if maker == "kafka" else "kafka"]


@pytest.mark.parametrize("maker", ["kafka", "barnabas"])
def test_rules(cluster, maker):
    one, other = pair(cluster, maker)
    made = ask(one, ApiKey.CREATE_ACLS, create_acls(*RULES))
    assert [result.error_code for result in made.results] == [0] * len(RULES)
    assert rules_at(one, len(RULES)) == rules_at(other, len(RULES)) == set(RULES)
    deleted = ask(other, ApiKey.DELETE_ACLS, delete_acls(Rule(principal="User:alice"), Rule(principal="User:bob")))
    assert [len(result.matching_acls) for result in deleted.filter_results] == [2, 1]
    assert rules_at(one, 1) == rules_at(other, 1) == {RULES[2]}
    ask(one, ApiKey.DELETE_ACLS, delete_acls(Rule()))
    assert rules_at(one, 0) == rules_at(other, 0) == set()


def say(broker, key, request, version, login=ALICE):
    with Wire("127.0.0.1", broker.internal_port) as wire:
        authenticate(wire, login)
        return wire.ask(key, request, version)


def token_at(broker, is_as_wanted):
    """What a broker says about the only token, once it knows the last change."""
    while True:
        tokens = say(broker, ApiKey.DESCRIBE_DELEGATION_TOKEN, describe_tokens(), 3).tokens
        if is_as_wanted(tokens):
            return tokens


@pytest.mark.parametrize("maker", ["kafka", "barnabas"])
def test_tokens(cluster, maker):
    one, other = pair(cluster, maker)
    made = say(one, ApiKey.CREATE_DELEGATION_TOKEN, create_token(renewers=["CN=bob, ü"]), 3)
    assert made.error_code == 0
    hmac = bytes(made.hmac)
    assert token_at(one, len) == token_at(other, len)
    login = Security(None, "SCRAM-SHA-256", made.token_id, base64.b64encode(hmac).decode(), is_token=True)
    for broker in (one, other):
        refused = say(broker, ApiKey.DESCRIBE_DELEGATION_TOKEN, describe_tokens(), 3, login)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    renewed = say(other, ApiKey.RENEW_DELEGATION_TOKEN, renew_token(hmac, 60_000), 2)
    assert renewed.error_code == 0
    for broker in (one, other):
        token_at(broker, lambda tokens: tokens[0].expiry_timestamp == renewed.expiry_timestamp_ms)
    assert say(other, ApiKey.EXPIRE_DELEGATION_TOKEN, expire_token(hmac), 2).error_code == 0
    for broker in (one, other):
        token_at(broker, lambda tokens: not tokens)


@pytest.mark.parametrize("maker", ["kafka", "barnabas"])
def test_the_controller_removes_expired_tokens(cluster, maker):
    one, other = pair(cluster, maker)
    assert say(one, ApiKey.CREATE_DELEGATION_TOKEN, create_token(max_lifetime_ms=500), 3).error_code == 0
    for broker in (one, other):
        token_at(broker, lambda tokens: not tokens)

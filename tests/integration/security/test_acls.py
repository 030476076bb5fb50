"""Users who may do only what rules allow: stock clients, Kafka's tool, three brokers, and the fixture."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas import Barnabas, BarnabasError
from tests.support.apache_kafka import run_tool

USERS = {"alice": "a-secret", "bob": "b-secret", "admin": "c-secret"}
ACLS = [
    {"user": "alice", "allow": "write", "topic": "orders"},
    {"user": "bob", "allow": ["read"], "topic": "ord", "prefixed": True},
    {"user": "bob", "allow": "read", "group": "*"},
    {"user": "bob", "deny": "read", "group": "secret"},
]


@pytest.fixture(scope="module", params=[1, 3])
def broker(request):
    with Barnabas(
        security="sasl_plaintext", users=USERS, acls=ACLS, brokers=request.param, super_users="User:admin"
    ) as broker:
        broker.create_topic("orders")
        broker.create_topic("payments")
        yield broker


def producer(broker, user):
    return Producer(broker.client_settings("confluent", user=user) | {"topic.metadata.refresh.interval.ms": 100})


def produced(broker, user, topic):
    errors = []
    own = producer(broker, user)
    own.produce(topic, b"value", on_delivery=lambda error, _: errors.append(error))
    assert own.flush(60) == 0
    return errors


def consumed(broker, user, topic, group):
    settings = broker.client_settings("confluent", user=user)
    consumer = Consumer(settings | {"group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        while (message := consumer.poll(60)) is not None:
            if message.error() is None:
                return message.value()
            if message.error().code() in (
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.GROUP_AUTHORIZATION_FAILED,
            ):
                return message.error().code()
    finally:
        consumer.close()
    raise AssertionError("nothing was consumed")


def test_who_may_write_and_who_may_read(broker):
    assert produced(broker, "alice", "orders") == [None]
    (error,) = produced(broker, "bob", "orders")
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    (error,) = produced(broker, "alice", "payments")
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consumed(broker, "bob", "orders", "g") == b"value"
    assert consumed(broker, "bob", "orders", "secret") == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert consumed(broker, "bob", "payments", "g2") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_topics_that_one_may_not_see(broker):
    def seen(user):
        topics = AdminClient(broker.client_settings("confluent", user=user)).list_topics(timeout=60).topics
        return {name for name in topics if not name.startswith("__")}

    assert seen("alice") == {"orders"}
    assert seen("bob") == {"orders"}
    assert {"orders", "payments"} <= seen("admin")


def test_a_right_that_is_taken_away_is_gone_for_connections_that_are_open(broker):
    admin = AdminClient(broker.client_settings("confluent", user="admin"))
    broker.create_topic("revoked")
    right = ("User:alice", "*", AclOperation.WRITE, AclPermissionType.ALLOW)
    binding = AclBinding(ResourceType.TOPIC, "revoked", ResourcePatternType.LITERAL, *right)
    (created,) = admin.create_acls([binding]).values()
    created.result(60)
    own, errors = producer(broker, "alice"), []

    def produced_again():
        own.produce("revoked", b"value", on_delivery=lambda error, _: errors.append(error and error.code()))
        assert own.flush(60) == 0
        return errors[-1]

    while produced_again() is not None:  # the leader may hear of the rule a moment later
        pass
    chosen = AclBindingFilter(ResourceType.TOPIC, "revoked", ResourcePatternType.LITERAL, *right)
    (deleted,) = admin.delete_acls([chosen]).values()
    assert len(deleted.result(60)) == 1
    while produced_again() is None:
        pass
    assert errors[-1] == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_transactions_need_a_transactional_id(broker):
    own = Producer(broker.client_settings("confluent", user="alice") | {"transactional.id": "x"})
    with pytest.raises(KafkaException) as caught:
        own.init_transactions(60)
    assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.java
def test_kafkas_tool(broker, tmp_path):
    settings = tmp_path / "admin.properties"
    properties = broker.client_settings("java", user="admin", mechanism="PLAIN")
    settings.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def acls(*arguments):
        server = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(settings))
        return run_tool("kafka-acls", *server, *arguments).stdout

    rule = ("--allow-principal", "User:carol", "--operation", "Write", "--transactional-id", "tx-")
    assert "principal=User:carol" in acls("--add", *rule, "--resource-pattern-type", "prefixed")
    acls("--add", "--allow-principal", "User:carol", "--producer", "--topic", "orders")
    listed = acls("--list", "--principal", "User:carol")
    assert "resourceType=TRANSACTIONAL_ID, name=tx-, patternType=PREFIXED" in listed
    assert "operation=CREATE" in listed
    acls("--remove", "--force", *rule, "--resource-pattern-type", "prefixed")
    acls("--remove", "--force", "--allow-principal", "User:carol", "--producer", "--topic", "orders")
    assert "carol" not in acls("--list")


@pytest.mark.kafka(security="sasl_plaintext", users={"alice": "s"}, acls=[])
def test_the_mark(kafka_broker):
    kafka_broker.create_topic("there")
    (error,) = produced(kafka_broker, "alice", "there")
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_rules_need_users():
    with pytest.raises(BarnabasError, match="acls are about users"):
        Barnabas(acls=[])


def test_an_invalid_rule():
    with pytest.raises(BarnabasError, match="must have user, allow or deny, and one of topic"):
        Barnabas(security="sasl_plaintext", acls=[{"user": "alice", "allow": "read"}]).start()

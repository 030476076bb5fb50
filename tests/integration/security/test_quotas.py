"""Quotas with real clients and Kafka's own tools: a client over its quota is throttled, and nobody else."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer

from barnabas import Barnabas
from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.requests.quotas import alter_quotas, describe_quotas
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool

RATE = 100_000
RECORD = b"x" * 10_000


@pytest.fixture
def broker():
    """Rates are over two seconds instead of ten, so that a burst at the beginning counts for less."""
    with Barnabas(quota_window_num=3) as broker:
        yield broker


def wire(broker):
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Wire(host, int(port))


def set_quotas(broker, entity, **values):
    (entry,) = wire(broker).ask(ApiKey.ALTER_CLIENT_QUOTAS, alter_quotas((entity, values)), 1).entries
    assert not entry.error_code


def create(broker, *topics):
    wire(broker).ask(ApiKey.CREATE_TOPICS, create_topics(*(new_topic(topic) for topic in topics)), 7)


def produced(broker, client_id, topic, count):
    """Produce this many records. Returns how long that took, and the throttle times that the broker answered."""
    throttled = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": client_id,
            "linger.ms": 0,
            "batch.size": 20_000,
            "compression.type": "none",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    started = time.monotonic()
    for _ in range(count):
        producer.produce(topic, RECORD)
    assert producer.flush(120) == 0
    return time.monotonic() - started, throttled


def test_a_producer_is_held_to_its_rate_and_another_is_not_slowed(broker):
    create(broker, "slow", "fast")
    set_quotas(broker, {"client-id": "slow"}, producer_byte_rate=RATE)
    with ThreadPoolExecutor(1) as executor:
        slow = executor.submit(produced, broker, "slow", "slow", 60)
        _, throttled = produced(broker, "fast", "fast", 600)  # ten times as much
        assert not throttled
        took, throttled = slow.result()
    assert throttled
    assert sum(throttled[:-1]) <= took  # nothing is sent after the last answer, so nobody waits that one out
    assert 60 * len(RECORD) / took < 2 * RATE


def test_a_consumer_is_held_to_its_rate_and_misses_nothing(broker):
    create(broker, "read")
    produced(broker, "writer", "read", 60)
    set_quotas(broker, {"client-id": "reader"}, consumer_byte_rate=RATE)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "reader",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 30_000,
        }
    )
    started = time.monotonic()
    consumer.subscribe(["read"])
    offsets = []
    while len(offsets) < 60:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        offsets.append(message.offset())
    took = time.monotonic() - started
    consumer.close()
    assert offsets == list(range(60))
    assert 60 * len(RECORD) / took < 2 * RATE


def test_quotas_outlive_a_restart(broker):
    set_quotas(broker, {"user": None, "client-id": "app"}, request_percentage=12.5)
    broker.restart()
    (entry,) = wire(broker).ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, describe_quotas(), 1).entries
    assert [(part.entity_type, part.entity_name) for part in entry.entity] == [("user", None), ("client-id", "app")]
    assert [(each.key, each.value) for each in entry.values] == [("request_percentage", 12.5)]


@pytest.mark.java
def test_kafkas_own_tool_alters_and_describes_quotas(broker):
    def configs(*arguments):
        return run_tool("kafka-configs", "--bootstrap-server", broker.bootstrap_servers, *arguments).stdout

    entities = {
        ("--entity-type", "users", "--entity-name", "alice"): "user-principal 'alice'",
        ("--entity-type", "users", "--entity-default"): "the default user-principal",
        ("--entity-type", "clients", "--entity-name", "app"): "client-id 'app'",
        ("--entity-type", "clients", "--entity-default"): "the default client-id",
        (
            *("--entity-type", "users", "--entity-name", "alice"),
            *("--entity-type", "clients", "--entity-name", "app"),
        ): "user-principal 'alice', client-id 'app'",
    }
    for number, entity in enumerate(entities):
        configs("--alter", *entity, "--add-config", f"producer_byte_rate={number + 1000},request_percentage=200")
    for number, (entity, name) in enumerate(entities.items()):
        described = configs("--describe", *entity)
        assert f"Quota configs for {name} are" in described
        assert f"producer_byte_rate={number + 1000}.0" in described
        assert "request_percentage=200.0" in described
    address = ("--entity-type", "ips", "--entity-name", "127.0.0.1")
    configs("--alter", *address, "--add-config", "connection_creation_rate=500")
    assert "connection_creation_rate=500.0" in configs("--describe", *address)
    configs("--alter", *address, "--delete-config", "connection_creation_rate")
    assert "connection_creation_rate" not in configs("--describe", "--entity-type", "ips")
    for entity in entities:
        configs("--alter", *entity, "--delete-config", "producer_byte_rate,request_percentage")
    for kind in ("users", "clients"):
        assert "Quota configs" not in configs("--describe", "--entity-type", kind)


def test_a_reset_takes_quotas_away(broker):
    set_quotas(broker, {"client-id": "app"}, producer_byte_rate=1)
    broker.reset()
    assert wire(broker).ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, describe_quotas(), 1).entries == []

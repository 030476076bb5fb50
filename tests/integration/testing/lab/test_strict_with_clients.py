"""Stock clients keep to the rules: strict mode has nothing to report about any of them."""

import pytest

from tests.integration.clients.interface import ProducerRecord
from tests.support.java_client import run_scenario

OPTIONS = {
    "strict": True,
    "settings": {
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.assignment.interval.ms": "0",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "100",
        "group.share.assignment.interval.ms": "0",
    },
}


@pytest.fixture(autouse=True)
def nothing_to_report(broker):
    yield
    broker.faults.clear()
    reports = broker.strict.reports
    broker.strict.clear()
    assert reports == []


def test_a_group_through_its_life(broker, client, group):
    topic = broker.create_topic(partitions=2)
    client.write(topic, *[ProducerRecord(b"%d" % number) for number in range(20)])
    both = {(topic, 0), (topic, 1)}
    first = group.join(client, topic)
    group.poll_until_shared(both)
    second = group.join(client, topic)
    group.poll_until_shared(both)
    group.leave(first)
    group.poll_until_shared(both)
    group.leave(second)


@pytest.mark.parametrize("name", ["confluent-kafka", pytest.param("java", marks=pytest.mark.java)])
def test_a_group_of_the_consumer_protocol(broker, client_named, group, name):
    client, topic = client_named(name), broker.create_topic(partitions=2)
    client.write(topic, *[ProducerRecord(b"%d" % number, partition=0) for number in range(20)])
    both = {(topic, 0), (topic, 1)}
    first = group.join(client, topic, settings={"group.protocol": "consumer"})
    group.read(20)
    second = group.join(client, topic, settings={"group.protocol": "consumer"})
    group.poll_until_shared(both)
    group.leave(first)
    group.poll_until_shared(both)
    group.leave(second)


@pytest.mark.java
def test_share_consumers(broker):
    """They accept, release and reject, reach the limit of deliveries, and leave in the middle."""
    run_scenario("ShareConsumers", broker.bootstrap_servers, timeout=120)


def test_producers_of_every_kind(broker, client, topic):
    for idempotent in (True, False):
        with client.producer(enable_idempotence=idempotent) as producer:
            for number in range(30):
                producer.send(topic, [ProducerRecord(b"%d" % number) for _ in range(10)])


def test_a_leader_that_is_elsewhere_for_a_while(broker, client, topic, group):
    """Errors that are retried, over and over for a second: with a pause, and by the newest metadata."""
    with broker.faults.add(topic=topic, error="NOT_LEADER_OR_FOLLOWER", for_ms=1000):
        client.write(topic, ProducerRecord(b"one"))
    with client.consumer(topic) as consumer:
        assert consumer.read(1)


def test_a_coordinator_that_moves(broker, client, topic, group):
    group.join(client, topic)
    group.poll_until_shared({(topic, 0)})
    with broker.faults.add(api="Heartbeat", group=group.name, error="NOT_COORDINATOR", times=5) as fault:
        group.poll_until(lambda: fault.hits >= 3, "heartbeats")
    group.poll_until_shared({(topic, 0)})


def test_transactions(broker, client, topic, group):
    """Committed and aborted ones, with offsets in them, and a producer that is fenced by the next."""
    client.write(topic, ProducerRecord(b"in"))
    member = group.join(client, topic)
    group.poll_until_shared({(topic, 0)})
    name = f"transaction-of-{topic}"
    with client.transactional_producer(name) as producer:
        for _ in range(2):
            producer.begin()
            producer.send(topic, [ProducerRecord(b"%d" % number) for number in range(20)])
            producer.send_offsets({(topic, 0): 1}, member)
            producer.commit()
        producer.begin()
        producer.send(topic, [ProducerRecord(b"lost")])
        producer.abort()
        with client.transactional_producer(name) as heir:
            heir.begin()
            heir.send(topic, [ProducerRecord(b"mine")])
            heir.commit()

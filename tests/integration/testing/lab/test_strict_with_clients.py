"""Stock clients keep to the rules: strict mode has nothing to report of any of them."""

import uuid

import pytest
from confluent_kafka import Producer as ConfluentProducer

from tests.integration.clients.interface import ProducerRecord

OPTIONS = {"strict": True}


@pytest.fixture(autouse=True)
def nothing_to_report(broker):
    yield
    broker.faults.clear()
    assert broker.strict.reports == []


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


def test_transactions_of_librdkafka(broker, topic):
    producer = ConfluentProducer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"tx-{uuid.uuid4()}"}
    )
    producer.init_transactions(60)
    for commit in (True, False, True):
        producer.begin_transaction()
        for number in range(50):
            producer.produce(topic, b"%d" % number)
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


def test_transactions_of_kafka_python(broker, topic):
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=f"tx-{uuid.uuid4()}")
    producer.init_transactions()
    for commit in (True, False, True):
        producer.begin_transaction()
        for number in range(50):
            producer.send(topic, b"%d" % number)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()


async def test_transactions_of_aiokafka(broker, topic):
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id=f"tx-{uuid.uuid4()}", client_id="aio"
    )
    await producer.start()
    try:
        for _ in range(3):
            async with producer.transaction():
                for number in range(50):
                    await producer.send(topic, b"%d" % number)
    finally:
        await producer.stop()

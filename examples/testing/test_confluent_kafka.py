"""confluent-kafka: a lost response must neither duplicate nor lose a payment."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer


def pay(bootstrap_servers, topic, payments):
    """The code under test. Raises if a payment may not have been written."""
    settings = {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "delivery.timeout.ms": 30_000}
    producer = Producer(settings)
    failures = []
    for payment in payments:
        producer.produce(topic, payment, on_delivery=lambda error, _: failures.append(error) if error else None)
        producer.poll(0)
    producer.flush()
    if failures:
        raise KafkaException(failures[0])


def read(bootstrap_servers, topic, count):
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "audit", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    messages = consumer.consume(count, timeout=60)
    consumer.close()
    return [message.value() for message in messages]


def test_an_answer_that_is_lost_writes_nothing_twice(kafka_broker, kafka_topic):
    # The broker writes the first batch and closes the connection instead of responding.
    with kafka_broker.faults.add(api="Produce", topic=kafka_topic, close="after", times=1) as fault:
        pay(kafka_broker.bootstrap_servers, kafka_topic, [b"10 to K.", b"20 to Frieda"])
        assert fault.hits == 1
    assert read(kafka_broker.bootstrap_servers, kafka_topic, 2) == [b"10 to K.", b"20 to Frieda"]
    (partition,) = kafka_broker.state["topics"][kafka_topic]["partitions"]
    assert partition["log_end_offset"] == 2
    assert kafka_broker.journal.count("Produce", topic=kafka_topic) > 1  # it was sent again


def test_a_payment_that_the_broker_refuses_is_no_secret(kafka_broker, kafka_topic):
    with kafka_broker.faults.add(api="Produce", topic=kafka_topic, error="TOPIC_AUTHORIZATION_FAILED"):
        with pytest.raises(KafkaException):
            pay(kafka_broker.bootstrap_servers, kafka_topic, [b"10 to K."])

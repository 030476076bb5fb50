"""A cluster of three brokers: an application carries on when the leader of its topic is killed."""

import pytest
from confluent_kafka import Consumer, Producer

pytestmark = pytest.mark.kafka(brokers=3, min_insync_replicas=2)


class Orders:
    """The code under test: it must not lose an order that it has accepted."""

    def __init__(self, bootstrap_servers, topic):
        self.topic = topic
        self.accepted = []
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})

    def accept(self, order):
        def delivered(error, message):
            assert error is None, error
            self.accepted.append(order)

        self._producer.produce(self.topic, order.encode(), on_delivery=delivered)
        self._producer.flush(60)


def read(bootstrap_servers, topic, count):
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None, f"only {found} came"
        if message.error() is None:
            found.append(message.value().decode())
    consumer.close()
    return found


def leader(broker, topic):
    return broker.state["topics"][topic]["partitions"][0]["leader"]


def test_no_order_is_lost_when_a_leader_dies(kafka_broker, kafka_topic):
    orders = Orders(kafka_broker.bootstrap_servers, kafka_topic)
    orders.accept("ink")
    former = leader(kafka_broker, kafka_topic)
    kafka_broker.nodes[former].kill()
    orders.accept("paper")
    assert leader(kafka_broker, kafka_topic) != former
    kafka_broker.nodes[former].start()
    orders.accept("sealing wax")
    assert orders.accepted == ["ink", "paper", "sealing wax"]
    assert read(kafka_broker.bootstrap_servers, kafka_topic, 3) == orders.accepted


def test_orders_go_on_while_a_broker_is_cut_off(kafka_broker, kafka_topic):
    orders = Orders(kafka_broker.bootstrap_servers, kafka_topic)
    orders.accept("ink")
    followers = [each for each in kafka_broker.nodes if each != leader(kafka_broker, kafka_topic)]
    kafka_broker.nodes[followers[0]].isolate()
    kafka_broker.clock.advance(60)  # longer than replica.lag.time.max.ms and the broker's session
    orders.accept("paper")
    kafka_broker.nodes[followers[0]].heal()
    assert read(kafka_broker.bootstrap_servers, kafka_topic, 2) == ["ink", "paper"]


def test_a_leader_is_moved_under_the_application(kafka_broker, kafka_topic):
    orders = Orders(kafka_broker.bootstrap_servers, kafka_topic)
    for broker_id in kafka_broker.nodes:
        if broker_id != leader(kafka_broker, kafka_topic):
            kafka_broker.move_leader(kafka_topic, 0, to=broker_id)
        orders.accept(f"order for {broker_id}")
    assert len(read(kafka_broker.bootstrap_servers, kafka_topic, 3)) == 3

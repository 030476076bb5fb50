"""Which topics a consumer reads."""

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import BrokerError
from barnabas.client.subscription import Subscription
from tests.support.scripted_broker import ScriptedBroker


@pytest.fixture
def client():
    with ScriptedBroker() as broker, Client([Address("127.0.0.1", broker.port)], timeout=20) as client:
        broker.partitions = {"orders": 1, "orders-eu": 1, "preorders": 1, "__consumer_offsets": 1}
        metadata = broker.metadata

        def answer(request):
            told = metadata(request)
            for topic in told.topics:
                topic.is_internal = topic.name.startswith("__")
            return told

        broker.answers[3] = answer
        yield client


def test_names(client):
    assert Subscription(["orders"]).current(client) == ["orders"]
    with pytest.raises(BrokerError, match="topic 'missing'"):
        Subscription(["orders", "missing"]).current(client)


def test_a_pattern_matches_whole_names(client):
    assert Subscription(["orders.*"], regex=True).current(client) == ["orders", "orders-eu"]
    assert Subscription(["orders", "pre.*"], regex=True).current(client) == ["orders", "preorders"]


def test_a_pattern_matches_no_internal_topic_but_a_name_does(client):
    assert Subscription([".*"], regex=True).current(client) == ["orders", "orders-eu", "preorders"]
    assert Subscription(["__consumer_offsets"]).current(client) == ["__consumer_offsets"]


def test_a_pattern_that_matches_nothing(client):
    assert Subscription(["x.*", "y"], regex=True).current(client) == []

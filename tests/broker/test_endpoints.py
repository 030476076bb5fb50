"""Which address a client gets: the advertised one, or else the one that it connected to."""

from types import SimpleNamespace

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.controller.images import BrokerImage, Endpoint
from barnabas.broker.endpoints import BrokerEndpoint, endpoints_for


def broker(*images: BrokerImage, node_id: int = 0):
    return SimpleNamespace(
        config=SimpleNamespace(node_id=node_id),
        cluster=SimpleNamespace(brokers={image.broker_id: image for image in images}),
    )


def came_by(host: str, port: int, listener: str = "PLAINTEXT", **settings: str):
    """A connection to this address of a broker with these settings."""
    names = {name.replace("_", "."): value for name, value in settings.items()}
    (config,) = (each for each in BrokerConfig(names).broker_listeners if each.name == listener)
    return SimpleNamespace(listener=SimpleNamespace(name=listener, config=config), local_address=(host, port))


OWN = BrokerImage(0, (Endpoint("PLAINTEXT", "PLAINTEXT", "0.0.0.0", 9092),), "r1")
OTHER = BrokerImage(
    1, (Endpoint("INSIDE", "PLAINTEXT", "inside", 9092), Endpoint("PLAINTEXT", "PLAINTEXT", "outside", 9093)), "r2"
)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7", "::1"])
def test_by_default_a_client_gets_the_address_that_it_connected_to(host):
    assert endpoints_for(broker(OWN), came_by(host, 9092)) == [BrokerEndpoint(0, host, 9092, "r1")]


def test_every_client_gets_the_advertised_address():
    connection = came_by("127.0.0.1", 9092, advertised_listeners="PLAINTEXT://broker.example:19092")
    assert endpoints_for(broker(OWN), connection) == [BrokerEndpoint(0, "broker.example", 19092, "r1")]


def test_each_listener_has_an_advertised_address_of_its_own():
    settings = {
        "listeners": "PLAINTEXT://:9092,INSIDE://:9093",
        "advertised_listeners": "PLAINTEXT://outside.example:9092,INSIDE://inside.example:9093",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    }
    told = [
        endpoints_for(broker(OWN), came_by("127.0.0.1", port, name, **settings))[0].host
        for name, port in (("PLAINTEXT", 9092), ("INSIDE", 9093))
    ]
    assert told == ["outside.example", "inside.example"]


def test_a_listener_without_an_advertised_address_gives_the_one_it_was_reached_at():
    settings = {
        "listeners": "PLAINTEXT://:9092,INSIDE://:9093",
        "advertised_listeners": "PLAINTEXT://outside.example:9092",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    }
    connection = came_by("192.0.2.7", 9093, "INSIDE", **settings)
    assert endpoints_for(broker(OWN), connection) == [BrokerEndpoint(0, "192.0.2.7", 9093, "r1")]


def test_other_brokers_are_listed_with_their_endpoint_of_the_same_listener():
    found = endpoints_for(broker(OWN, OTHER), came_by("127.0.0.1", 9092))
    assert found == [BrokerEndpoint(0, "127.0.0.1", 9092, "r1"), BrokerEndpoint(1, "outside", 9093, "r2")]


def test_a_broker_without_that_listener_is_left_out():
    other = BrokerImage(1, (Endpoint("INSIDE", "PLAINTEXT", "inside", 9092),))
    assert [endpoint.broker_id for endpoint in endpoints_for(broker(OWN, other), came_by("127.0.0.1", 9092))] == [0]

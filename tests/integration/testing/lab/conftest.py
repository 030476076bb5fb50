"""Scenarios of a broker in a test-suite, played by every client library to one broker for each module."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from barnabas import Barnabas
from tests.integration.clients.aio_kafka import AioKafkaClient
from tests.integration.clients.confluent import ConfluentClient
from tests.integration.clients.groups import Group
from tests.integration.clients.interface import Client
from tests.integration.clients.java import JavaClient, JavaDriver
from tests.integration.clients.kafka_python import KafkaPythonClient

CLIENTS = {client.name: client for client in (KafkaPythonClient, ConfluentClient, AioKafkaClient, JavaClient)}
EVERY_CLIENT = [pytest.param(name, marks=pytest.mark.java) if name == "java" else name for name in CLIENTS]

numbers = count()


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[Barnabas]:
    """The module's broker; its OPTIONS are for the handle."""
    with Barnabas(**getattr(request.module, "OPTIONS", {})) as broker:
        yield broker


@pytest.fixture(scope="session")
def java_driver() -> Iterator[JavaDriver]:
    with JavaDriver() as driver:
        yield driver


@pytest.fixture(scope="module")
def client_named(request: pytest.FixtureRequest, broker: Barnabas) -> Iterator[Callable[[str], Client]]:
    """A client library by its name; each is created once."""
    made: dict[str, Client] = {}

    def named(name: str) -> Client:
        if name not in made:
            if name == "java":
                made[name] = JavaClient(broker.bootstrap_servers, request.getfixturevalue("java_driver"))
            else:
                made[name] = CLIENTS[name](broker.bootstrap_servers)
        return made[name]

    yield named
    for client in made.values():
        client.close()


@pytest.fixture(params=EVERY_CLIENT)
def client(request: pytest.FixtureRequest, client_named: Callable[[str], Client]) -> Client:
    return client_named(request.param)


@pytest.fixture
def topic(broker: Barnabas) -> str:
    """A new topic of one partition."""
    return broker.create_topic(f"scenario-{next(numbers)}")


@pytest.fixture
def group(topic: str) -> Iterator[Group]:
    """A group without members. Members that have not left at the end of the test leave then."""
    with Group(f"group-of-{topic}") as members:
        yield members

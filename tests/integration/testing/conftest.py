"""What a test can do with a broker, seen by client libraries. It is the plugin's broker, empty before each test."""

from collections.abc import Callable, Iterator

import pytest

from barnabas import Barnabas
from tests.integration.clients.confluent import ConfluentClient
from tests.integration.clients.groups import Group
from tests.integration.clients.interface import Client
from tests.integration.clients.kafka_python import KafkaPythonClient

CLIENTS = {client.name: client for client in (KafkaPythonClient, ConfluentClient)}


@pytest.fixture
def broker(kafka_broker: Barnabas) -> Barnabas:
    kafka_broker.reset()
    return kafka_broker


@pytest.fixture(scope="module")
def client_named(kafka_broker: Barnabas) -> Iterator[Callable[[str], Client]]:
    made: dict[str, Client] = {}

    def named(name: str) -> Client:
        if name not in made:
            made[name] = CLIENTS[name](kafka_broker.bootstrap_servers)
        return made[name]

    yield named
    for client in made.values():
        client.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, broker: Barnabas, client_named: Callable[[str], Client]) -> Client:
    return client_named(request.param)


@pytest.fixture
def group() -> Iterator[Group]:
    with Group("group") as members:
        yield members

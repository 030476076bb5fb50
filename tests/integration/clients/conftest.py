"""Each scenario is played by every client library, to one broker for each module of scenarios."""

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from barnabas import Barnabas
from tests.integration.clients.aio_kafka import AioKafkaClient
from tests.integration.clients.confluent import ConfluentClient
from tests.integration.clients.franz_go import FranzGoClient, FranzGoDriver
from tests.integration.clients.groups import Group
from tests.integration.clients.interface import Client
from tests.integration.clients.java import JavaClient, JavaDriver
from tests.integration.clients.kafka_python import KafkaPythonClient
from tests.support.apache_kafka import ApacheKafka

CLIENTS = {client.name: client for client in (KafkaPythonClient, ConfluentClient, AioKafkaClient, JavaClient)}
EVERY_CLIENT = [pytest.param(name, marks=pytest.mark.java) if name == "java" else name for name in CLIENTS]

numbers = count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module whose scenarios are played to clusters of several sizes has them in BROKERS."""
    if "broker" in metafunc.fixturenames:
        sizes = getattr(metafunc.module, "BROKERS", None)
        if sizes is not None:
            names = [f"{size} brokers" if size > 1 else "1 broker" for size in sizes]
            metafunc.parametrize("broker", sizes, indirect=True, ids=names, scope="module")


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Barnabas | ApacheKafka]:
    """The module's broker, or a cluster of several, with the module's SETTINGS if it has some.

    With BARNABAS_TEST_BROKER=kafka it is Apache Kafka: what a scenario expects has to be true there too.
    """
    settings = getattr(request.module, "SETTINGS", None)
    if os.environ.get("BARNABAS_TEST_BROKER") == "kafka":
        with ApacheKafka(settings) as kafka:
            yield kafka
        return
    brokers = getattr(request, "param", 1)
    with Barnabas(settings, brokers=brokers, data=tmp_path_factory.mktemp("data"), journal=False) as process:
        yield process


def address(broker: Barnabas | ApacheKafka) -> str:
    return broker.bootstrap if isinstance(broker, ApacheKafka) else broker.bootstrap_servers


@pytest.fixture(scope="session")
def java_driver() -> Iterator[JavaDriver]:
    with JavaDriver() as driver:
        yield driver


@pytest.fixture(scope="session")
def franz_go_driver() -> Iterator[FranzGoDriver]:
    with FranzGoDriver() as driver:
        yield driver


@pytest.fixture(scope="module")
def franz_go(broker: Barnabas | ApacheKafka, franz_go_driver: FranzGoDriver) -> FranzGoClient:
    return FranzGoClient(address(broker), franz_go_driver)


@pytest.fixture(scope="module")
def client_named(request: pytest.FixtureRequest, broker: Barnabas | ApacheKafka) -> Iterator[Callable[[str], Client]]:
    """A client library by its name; each is created once."""
    made: dict[str, Client] = {}
    bootstrap = address(broker)

    def named(name: str) -> Client:
        if name not in made:
            if name == "java":
                made[name] = JavaClient(bootstrap, request.getfixturevalue("java_driver"))
            else:
                made[name] = CLIENTS[name](bootstrap)
        return made[name]

    yield named
    for client in made.values():
        client.close()


@pytest.fixture(params=EVERY_CLIENT)
def client(request: pytest.FixtureRequest, client_named: Callable[[str], Client]) -> Client:
    return client_named(request.param)


@pytest.fixture
def new_name() -> str:
    """A topic name that has not been used yet."""
    return f"topic-{next(numbers)}"


@pytest.fixture
def topic(client: Client, new_name: str) -> str:
    """A topic of one partition, created by the client itself."""
    client.create_topic(new_name)
    return new_name


@pytest.fixture
def group(new_name: str) -> Iterator[Group]:
    """A group without members. Members that have not left at the end of the test leave then."""
    with Group(f"group-of-{new_name}") as members:
        yield members

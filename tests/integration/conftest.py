import sys

import pytest

from barnabas import Barnabas
from tests.support.admin_side_by_side import administered
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """Let the first broker process compile for all others, even if Python is told not to write bytecode."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture
def broker(tmp_path):
    """A broker for one test, with an empty data directory."""
    with BrokerProcess(tmp_path / "data") as process:
        yield process


@pytest.fixture(scope="session")
def shared_broker(compiled_once):
    """A broker for tests that leave it as they found it. It has one topic, `shared`, of three partitions."""
    with Barnabas(num_partitions=3) as broker:
        broker.create_topic("shared")
        yield broker


@pytest.fixture(scope="session")
def administered_brokers(tmp_path_factory):
    """Apache Kafka and Barnabas, to administer; both have the same topics, which tests leave as they found them."""
    with administered(tmp_path_factory.mktemp("data")) as sides:
        yield sides

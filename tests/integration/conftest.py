import sys

import pytest

from barnabas import Barnabas
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """Let the first broker process compile for all others, also where Python is told to keep no bytecode."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture
def broker(tmp_path):
    """A broker of the test's own, with an empty data directory."""
    with BrokerProcess(tmp_path / "data") as process:
        yield process


@pytest.fixture(scope="session")
def shared_broker(compiled_once):
    """A broker for tests that leave it as they found it. It has one topic, `shared`, of three partitions."""
    with Barnabas(num_partitions=3) as broker:
        broker.create_topic("shared")
        yield broker

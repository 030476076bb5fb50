"""A partition, with a worker that a test runs by hand and a clock that it moves."""

import pytest

from barnabas.broker.replica.partition import Partition
from tests.broker.replica.partition.fakes import Appends, FakeReplicas
from tests.storage.support import make_log


@pytest.fixture
def replicas():
    return FakeReplicas()


@pytest.fixture
def worker(replicas):
    return replicas.worker


@pytest.fixture
def clock(replicas):
    return replicas.clock


@pytest.fixture
def make(tmp_path, replicas):
    """Make a partition that leads; returned with an object that appends to it."""

    def make(config=None, file_system=None):
        log = make_log(tmp_path / "t-0", config, file_system=file_system)
        partition = Partition(replicas, "t", bytes(16), 0, log)
        partition.lead(0)
        return partition, Appends(partition, replicas)

    return make

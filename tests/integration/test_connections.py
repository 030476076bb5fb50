"""Many connections, and many ways to reach the broker, with a real process at the other end."""

import json
import os
import socket
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas.client.requests.data import fetch, produce
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.batches import batch
from tests.support.broker_process import BrokerProcess

MANY = 2000
# How much memory an idle connection may cost the broker.
BYTES_PER_CONNECTION = 10_000

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")


@contextmanager
def open_files(soft: int):
    """Let this process and its children have this many files open by default."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < MANY + 200:
        pytest.skip(f"this system lets a process have at most {limits[1]} files open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def memory(pid: int) -> int | None:
    """The bytes that a process has in memory, on systems that show them as Linux does."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return None


def test_thousands_of_idle_connections_are_held_while_one_works(tmp_path):
    with ExitStack() as stack:
        with open_files(1024):  # the default of most systems, which the broker raises
            broker = stack.enter_context(BrokerProcess(tmp_path))
        stack.enter_context(open_files(MANY + 200 + len(os.listdir("/dev/fd"))))  # beside what other tests left open
        worker = stack.enter_context(Wire("127.0.0.1", broker.port))
        worker.ask(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        before = memory(broker.process.pid)
        idle = []
        for number in range(MANY):
            idle.append(stack.enter_context(Wire("127.0.0.1", broker.port)))
            if number % 40 == 39:  # an answer to the last one shows that all are accepted, so that none has to queue
                idle[-1].ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        after = memory(broker.process.pid)
        for _ in range(100):
            assert worker.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"value"))), 9).responses
        for wire in idle:
            wire.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        if before is not None:
            assert after - before < MANY * BYTES_PER_CONNECTION


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """A broker that listens on every interface."""
    with BrokerProcess(tmp_path_factory.mktemp("everywhere"), "--listen", ":0") as broker:
        yield broker


def advertised(host: str, port: int) -> list[tuple[str, int]]:
    """What Metadata and DescribeCluster tell a client that connected to this address."""
    with Wire(host, port) as wire:
        metadata = wire.ask(ApiKey.METADATA, MetadataRequest(topics=[]), 12)
        cluster = wire.ask(
            ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(include_cluster_authorized_operations=False), 0
        )
    return [(broker.host, broker.port) for answer in (metadata, cluster) for broker in answer.brokers]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", pytest.param("::1", marks=needs_ipv6)])
def test_a_client_gets_the_address_that_it_connected_to(everywhere, host):
    try:
        socket.create_connection((host, everywhere.port)).close()
    except OSError:
        pytest.skip(f"this system has no {host}")
    assert advertised(host, everywhere.port) == [(host, everywhere.port)] * 2


def test_each_listener_advertises_its_own_address_or_the_one_by_which_it_is_reached(tmp_path):
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "OUTSIDE",
        "advertised.listeners": "OUTSIDE://broker.example:19092",
    }
    broker = BrokerProcess(tmp_path, settings=settings)
    del broker.arguments[:2]  # --listen, which would be the only listener
    with broker:
        listening = [entry for entry in map(json.loads, broker.log.splitlines()) if entry["event"] == "listening"]
        ports = {entry["listener"]: int(entry["address"].rpartition(":")[2]) for entry in listening}
        assert advertised("127.0.0.1", ports["INSIDE"]) == [("127.0.0.1", ports["INSIDE"])] * 2
        assert advertised("127.0.0.1", ports["OUTSIDE"]) == [("broker.example", 19092)] * 2


@pytest.fixture
def poor_platform(tmp_path, monkeypatch):
    """Python without uvloop and sendfile."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import os, sys\nsys.modules['uvloop'] = None\ndel os.sendfile\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("poor_platform")
def test_without_uvloop_and_sendfile_the_broker_works_on_plain_asyncio(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker, Wire("127.0.0.1", broker.port) as wire:
        maps = Path(f"/proc/{broker.process.pid}/maps")
        assert not maps.exists() or "uvloop" not in maps.read_text()
        wire.ask(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        records = batch(b"x" * 500_000)
        for offset in range(5):
            (topic,) = wire.ask(ApiKey.PRODUCE, produce(("t", 0, records)), 9).responses
            assert (topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset) == (0, offset)
        (topic,) = wire.ask(ApiKey.FETCH, fetch(("t", 0, 0), partition_max_bytes=10_000_000), 11).responses
        assert len(topic.partitions[0].records) == 5 * len(records)
        assert broker.stop() == 0

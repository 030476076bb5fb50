"""Barnabas brokers as processes of their own around a real ZooKeeper: they start, die, come back, and say what keeps
them from starting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.broker.apis import BETWEEN_BROKERS
from barnabas.client.requests.admin import describe_configs, incremental_alter_configs
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.cluster import REGISTRY, BrokerNode, Cluster
from tests.support.cluster.brokers import BarnabasNode
from tests.support.ports import HeldPort
from tests.support.sample_messages import sample

pytestmark = pytest.mark.java

TOPIC = "orders"
TOPIC_RESOURCE = 2
SET = 0
SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1")
SETTINGS = {"auto.leader.rebalance.enable": "false"}


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(["barnabas"] * 3, SETTINGS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        new = NewTopic(TOPIC, 3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        for each in admin.create_topics([new]).values():
            each.result(60)
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Whole, whatever the last test has done."""
    running.network.heal()
    running.start_brokers([each for each in running.brokers if not each.is_running])
    running.await_whole()
    return running


def write(cluster: Cluster, count: int = 300, *, idempotence: bool = True) -> None:
    """Everything is acknowledged by all in-sync replicas, whoever leads."""
    failures: list[object] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 90_000}
    settings["enable.idempotence"] = idempotence
    producer = Producer(
        {
            **settings,
            "request.timeout.ms": 3000,
            "socket.timeout.ms": 4000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    for number in range(count):
        producer.produce(
            TOPIC, b"%d" % number, partition=number % 3, on_delivery=lambda error, _: error and failures.append(error)
        )
    assert producer.flush(90) == 0
    assert failures == []


def assert_replicas_are_the_same(cluster: Cluster) -> None:
    cluster.await_whole()
    until(lambda: not cluster.replicas_that_differ(TOPIC, range(3)), "the replicas differ")


def until(is_so: Callable[[], bool], otherwise: str, seconds: float = 120) -> None:
    """For changes that nothing announces."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def registration(cluster: Cluster, broker: BrokerNode) -> int | None:
    """The number of the transaction that registered a broker."""
    found = cluster.retrying(cluster.tree.exists, f"/brokers/ids/{broker.id}")
    return None if found is None else int(found.czxid)


def await_gone(cluster: Cluster, broker: BrokerNode) -> None:
    until(lambda: registration(cluster, broker) is None, f"the session of broker {broker.id} does not end")


def test_a_leader_is_killed_and_comes_back(cluster: Cluster) -> None:
    leader = cluster.leader(TOPIC, 0)
    assert leader is not None
    write(cluster)
    leader.kill()
    write(cluster)
    cluster.start_brokers([leader])
    assert_replicas_are_the_same(cluster)


def test_the_controller_stops_and_hands_over_what_it_leads(cluster: Cluster) -> None:
    controller = cluster.controller
    controller.stop()
    assert all(state["leader"] not in (-1, controller.id) for _, state in cluster.states())
    write(cluster)
    assert registration(cluster, controller) is None  # at once: it ended its session
    cluster.start_brokers([controller])
    assert_replicas_are_the_same(cluster)


def test_everybody_is_killed_at_once(cluster: Cluster) -> None:
    write(cluster)
    for each in cluster.brokers:
        each.kill()
    cluster.start_brokers(cluster.brokers)
    write(cluster)
    assert_replicas_are_the_same(cluster)


def test_brokers_keep_serving_while_zookeeper_is_away(cluster: Cluster) -> None:
    cluster.zookeeper.kill()
    write(cluster, idempotence=False)  # no new producer ids can be allocated now
    cluster.zookeeper.start()
    write(cluster)
    assert_replicas_are_the_same(cluster)
    for each in cluster.brokers:
        assert each.is_running


def test_a_session_expires(cluster: Cluster) -> None:
    """The broker registers again as soon as it can, and takes part in everything again; it did not end."""
    broker = cluster.controller
    before = registration(cluster, broker)
    assert before is not None
    cluster.network.cut((broker.id, REGISTRY), (REGISTRY, broker.id))
    await_gone(cluster, broker)
    cluster.network.heal()
    until(lambda: (registration(cluster, broker) or -1) > before, "it does not register again")
    assert broker.is_running
    write(cluster)
    assert_replicas_are_the_same(cluster)


def test_a_broker_that_was_paused_for_longer_than_its_session(cluster: Cluster) -> None:
    broker = cluster.leader(TOPIC, 1)
    assert broker is not None
    broker.pause()
    await_gone(cluster, broker)
    write(cluster)
    broker.resume()
    write(cluster)
    assert_replicas_are_the_same(cluster)
    assert broker.is_running


def test_settings_that_one_broker_altered_are_known_to_all(cluster: Cluster) -> None:
    broker, *others = cluster.brokers
    alteration = (TOPIC_RESOURCE, TOPIC, [(SET, "retention.ms", "123456789")])
    with Wire("127.0.0.1", broker.port) as wire:
        (answer,) = wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs(alteration), 1).responses
    assert answer.error_code == ErrorCode.NONE
    for other in others:
        with Wire("127.0.0.1", other.port) as wire:
            until(partial(retention_is_known, wire), f"broker {other.id} does not know of it")


def retention_is_known(wire: Wire) -> bool:
    question = describe_configs((TOPIC_RESOURCE, TOPIC, ["retention.ms"]))
    (answer,) = wire.ask(ApiKey.DESCRIBE_CONFIGS, question, 4).results
    return [each.value for each in answer.configs] == ["123456789"]


def test_only_brokers_may_give_orders(cluster: Cluster) -> None:
    """They are recognized by the listener that they use, and ApiVersions advertises their requests only there."""
    broker = cluster.brokers[0]
    with Wire("127.0.0.1", broker.port) as wire:
        for key in BETWEEN_BROKERS:
            request = request_type(key)
            version = request.versions.highest
            answer = wire.ask(key, sample(request, version), version)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        for_clients = {each.api_key for each in wire.ask(ApiKey.API_VERSIONS, SOFTWARE, 3).api_keys}
    with Wire("127.0.0.1", broker.internal_port) as wire:
        for_brokers = {each.api_key for each in wire.ask(ApiKey.API_VERSIONS, SOFTWARE, 3).api_keys}
    assert for_brokers - for_clients == {
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
        *(ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
    }


# --- what keeps a broker from starting ---


def refusal(node: BarnabasNode) -> str:
    """What it says when it ends without having been ready."""
    node.launch()
    assert node.process is not None
    try:
        assert node.process.wait(60) == 1
        node._ended.wait(60)
    finally:
        node.kill()
    return node.log_tail(1)


def another(cluster: Cluster, id: int, folder: Path, **settings: str) -> BarnabasNode:
    chosen = {
        "zookeeper.connect": cluster.zookeeper.connect,
        "zookeeper.session.timeout.ms": "2000",
        "zookeeper.connection.timeout.ms": "60000",
    }
    return BarnabasNode(id, folder, {**chosen, **{name.replace("_", "."): value for name, value in settings.items()}})


def test_an_id_that_is_taken(cluster: Cluster, tmp_path: Path) -> None:
    said = refusal(another(cluster, 2, tmp_path))
    assert "another broker with the id 2 is registered, at 127.0.0.1:" in said
    assert "each broker of a cluster needs a node.id of its own" in said
    write(cluster)


def test_the_data_of_another_cluster(cluster: Cluster, tmp_path: Path) -> None:
    node = another(cluster, 9, tmp_path, zookeeper_connect=f"{cluster.zookeeper.connect}/elsewhere")
    node.start()  # and a path at the end is a tree of its own
    node.stop()
    node.settings["zookeeper.connect"] = cluster.zookeeper.connect
    said = refusal(node)
    assert "cluster" in said
    assert str(tmp_path) in said
    assert registration(cluster, node) is None


def test_zookeeper_cannot_be_reached(cluster: Cluster, tmp_path: Path) -> None:
    nowhere = HeldPort()
    node = another(cluster, 9, tmp_path, zookeeper_connect=nowhere.address, zookeeper_connection_timeout_ms="500")
    said = refusal(node)
    assert f"ZooKeeper at {nowhere.address} cannot be reached within 500 ms" in said

"""The brokers of a cluster, as a test uses them."""

import socket

import pytest

from barnabas import Barnabas, BarnabasError, ControlFailed
from barnabas.client.requests.lookup import metadata
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.integration.clients.interface import wait_until


@pytest.fixture(scope="module")
def shared():
    with Barnabas(brokers=3, journal=False) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    yield shared
    shared.reset()


def leader(cluster, topic, partition=0):
    return cluster.state["topics"][topic]["partitions"][partition]["leader"]


def in_sync(cluster, topic, partition=0):
    return sorted(cluster.state["topics"][topic]["partitions"][partition]["isr"])


def is_listening(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def test_there_are_as_many_as_asked_for(cluster):
    assert list(cluster.nodes) == [0, 1, 2]
    assert len(cluster.nodes) == 3
    assert cluster.bootstrap_servers == ",".join(node.address for node in cluster.nodes.values())
    assert [node["running"] for node in cluster.state["nodes"]] == [True, True, True]
    assert repr(cluster.nodes[2]) == "<broker 2>"


def test_a_single_broker_is_a_cluster_of_one():
    with Barnabas(journal=False) as broker:
        assert list(broker.nodes) == [0]
        assert broker.nodes[0].address == broker.bootstrap_servers
        assert broker.nodes.controller.id == 0
        topic = broker.create_topic()
        assert broker.state["topics"][topic]["partitions"][0]["replicas"] == [0]


def test_killed_it_is_gone_and_started_it_is_back_at_its_address(cluster):
    topic = cluster.create_topic()
    node = cluster.nodes[leader(cluster, topic)]
    address = node.address
    node.kill()
    assert not node.running
    assert not is_listening(address)
    with pytest.raises(BarnabasError, match=f"broker {node.id} is not running"):
        _ = node.address
    with pytest.raises(ControlFailed, match=f"broker {node.id} is not running"):
        node.kill()
    node.start()
    assert node.running
    assert node.address == address
    assert is_listening(address)
    with pytest.raises(ControlFailed, match=f"broker {node.id} is already running"):
        node.start()


def test_stopped_it_has_handed_over_what_it_led(cluster):
    topic = cluster.create_topic(partitions=3)
    node = next(node for node in cluster.nodes.values() if not node.is_controller)
    node.stop()
    partitions = cluster.state["topics"][topic]["partitions"]
    assert all(each["leader"] not in (node.id, -1) for each in partitions)
    assert all(node.id not in each["isr"] for each in partitions)
    node.restart()
    assert node.running
    node.restart()
    assert node.running


def test_isolated_its_session_expires_with_the_clock(cluster):
    topic = cluster.create_topic()
    node = cluster.nodes[leader(cluster, topic)]
    node.isolate()
    assert node.state["isolated"]
    assert leader(cluster, topic) == node.id
    cluster.clock.advance(20)
    assert leader(cluster, topic) not in (node.id, -1)
    node.heal()
    assert not node.state["isolated"]


def test_isolated_from_clients_too_it_closes_their_connections(cluster):
    node = cluster.nodes[2]
    host, _, port = node.address.rpartition(":")
    node.isolate(clients=True)
    with socket.create_connection((host, int(port)), timeout=60) as client:
        assert client.recv(1) == b""
    node.heal()


def test_a_leader_is_moved_to_a_replica_that_is_in_sync(cluster):
    topic = cluster.create_topic()
    follower = next(each for each in cluster.nodes if each != leader(cluster, topic))
    cluster.move_leader(topic, 0, to=follower)
    assert leader(cluster, topic) == follower
    alone = cluster.create_topic(replication_factor=1)
    other = next(each for each in cluster.nodes if each != leader(cluster, alone))
    with pytest.raises(ControlFailed):
        cluster.move_leader(alone, 0, to=other)
    with pytest.raises(ControlFailed):
        cluster.move_leader("no-such-topic", 0, to=other)


def controller_as_told_by(node):
    host, port = node.address.split(":")
    with Wire(host, int(port)) as wire:
        return wire.ask(ApiKey.METADATA, metadata([]), 9).controller_id


def test_the_controller_is_changed(cluster):
    former = cluster.nodes.controller
    assert former.is_controller
    found = cluster.change_controller()
    assert found != former.id
    assert cluster.nodes.controller.id == found
    assert cluster.change_controller(to=former.id) == former.id
    assert cluster.change_controller(to=former.id) == former.id
    for wanted in [*cluster.nodes] * 5:
        cluster.change_controller(to=wanted)
        assert [controller_as_told_by(node) for node in cluster.nodes.values()] == [wanted] * 3
    with pytest.raises(ControlFailed, match="there is no broker 9"):
        cluster.change_controller(to=9)


def test_a_broker_that_is_not_there_is_named(cluster):
    with pytest.raises(KeyError):
        cluster.nodes[9]
    with pytest.raises(ControlFailed, match="there is no broker 9, only 0, 1, 2"):
        cluster.control.call("POST", "/nodes/9/kill", {})


def test_the_state_has_leaders_and_replicas(cluster):
    topic = cluster.create_topic(partitions=2, replication_factor=2)
    for partition in cluster.state["topics"][topic]["partitions"]:
        assert len(partition["replicas"]) == 2
        assert partition["leader"] == partition["replicas"][0]
        assert sorted(partition["isr"]) == sorted(partition["replicas"])


def test_a_reset_brings_everybody_back(cluster):
    cluster.create_topic(partitions=3)
    cluster.nodes[0].kill()
    cluster.nodes[1].isolate(clients=True)
    cluster.reset()
    assert [(node["running"], node["isolated"]) for node in cluster.state["nodes"]] == [(True, False)] * 3
    assert cluster.state["topics"] == {}
    assert len(in_sync(cluster, cluster.create_topic())) == 3


def test_a_state_of_all_of_them_is_restored(cluster):
    topic = cluster.create_topic("kept")
    with cluster.restoring():
        cluster.delete_topic(topic)
        cluster.create_topic("another")
    assert list(cluster.state["topics"]) == [topic]
    wait_until(lambda: in_sync(cluster, topic) == [0, 1, 2], "all replicas")  # they join again, one after the other


def test_all_of_them_come_back_with_their_data_after_a_crash_of_the_process():
    with Barnabas(brokers=3, journal=False) as cluster:
        addresses = cluster.bootstrap_servers
        topic = cluster.create_topic(partitions=3)
        for again in (cluster.kill, lambda: None):
            again()
            cluster.restart()
            assert cluster.bootstrap_servers == addresses
            assert topic in cluster.state["topics"]

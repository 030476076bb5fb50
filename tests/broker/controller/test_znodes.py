"""The nodes say what Kafka's did."""

import json

import pytest

from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import BrokerImage, Endpoint, PartitionImage
from barnabas.broker.registry.registry import Node

UUID = bytes(range(16))
PARTITIONS = [
    PartitionImage(0, (1, 2), leader_id=1, leader_epoch=3, isr_nodes=(1,)),
    PartitionImage(1, (2, 3, 1), adding_replicas=(3,), removing_replicas=(1,)),
]


def test_paths() -> None:
    assert znodes.topic_path("t") == "/brokers/topics/t"
    assert znodes.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.topic_config_path("t") == "/config/topics/t"
    assert znodes.broker_config_path(7) == "/config/brokers/7"
    assert znodes.broker_config_path(None) == "/config/brokers/<default>"


def test_a_topic() -> None:
    data = znodes.write_topic(UUID, PARTITIONS)
    assert json.loads(data) == {
        "version": 3,
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "partitions": {"0": [1, 2], "1": [2, 3, 1]},
        "adding_replicas": {"1": [3]},
        "removing_replicas": {"1": [1]},
    }
    assert znodes.read_topic("t", Node(data)) == (UUID, [(1, 2), (2, 3, 1)], {1: (3,)}, {1: (1,)})


def test_a_partitions_state() -> None:
    data = znodes.write_state(PARTITIONS[0], controller_epoch=5)
    assert json.loads(data) == {"version": 1, "controller_epoch": 5, "leader": 1, "leader_epoch": 3, "isr": [1]}
    assert znodes.read_state("t", 0, Node(data)) == (1, 3, (1,))


def test_configs() -> None:
    data = znodes.write_configs({"retention.ms": "1000", "ü": "ß"})
    assert json.loads(data) == {"version": 1, "config": {"retention.ms": "1000", "ü": "ß"}}
    assert znodes.read_configs("/config/topics/t", Node(data)) == {"retention.ms": "1000", "ü": "ß"}


def test_a_broker() -> None:
    endpoints = (Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092), Endpoint("OUTSIDE", "SSL", "::1", 9093))
    broker = BrokerImage(4, endpoints, rack="r")
    data = znodes.write_broker(broker, timestamp=1700000000000)
    fields = json.loads(data)
    assert fields["version"] == 5
    assert fields["endpoints"] == ["PLAINTEXT://localhost:9092", "OUTSIDE://[::1]:9093"]
    assert fields["listener_security_protocol_map"] == {"PLAINTEXT": "PLAINTEXT", "OUTSIDE": "SSL"}
    assert (fields["host"], fields["port"], fields["timestamp"]) == ("localhost", 9092, "1700000000000")
    assert znodes.read_broker(4, Node(data, czxid=7)) == broker._replace(epoch=7)


def test_the_cluster() -> None:
    assert znodes.read_cluster_id(Node(znodes.write_cluster_id("abc"))) == "abc"
    assert znodes.read_controller(Node(znodes.write_controller(3, timestamp=1))) == 3
    assert znodes.write_controller_epoch(12) == b"12"
    assert znodes.read_controller_epoch(Node(b"12")) == 12


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"partitions":3,"topic_id":"x"}', b"\xff", b"null"])
def test_a_node_that_says_something_else(data: bytes) -> None:
    node = Node(data)
    with pytest.raises(znodes.MalformedNode, match="/brokers/topics/t"):
        znodes.read_topic("t", node)
    with pytest.raises(znodes.MalformedNode, match="/brokers/topics/t/partitions/0/state"):
        znodes.read_state("t", 0, node)
    with pytest.raises(znodes.MalformedNode, match="/config/topics/t"):
        znodes.read_configs("/config/topics/t", node)
    with pytest.raises(znodes.MalformedNode, match="/brokers/ids/1"):
        znodes.read_broker(1, node)
    with pytest.raises(znodes.MalformedNode, match="/controller"):
        znodes.read_controller(node)
    with pytest.raises(znodes.MalformedNode, match="/controller_epoch"):
        znodes.read_controller_epoch(node)
    with pytest.raises(znodes.MalformedNode, match="/cluster/id"):
        znodes.read_cluster_id(node)


def test_partitions_without_a_gap() -> None:
    data = znodes.write_topic(UUID, [PARTITIONS[1]])
    with pytest.raises(znodes.MalformedNode):
        znodes.read_topic("t", Node(data))

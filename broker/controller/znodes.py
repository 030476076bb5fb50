"""Where the cluster's facts are in the tree, and what their nodes say.

Paths and JSON are those that Kafka kept in ZooKeeper:

    /cluster/id                              {"version": "1", "id": ID}
    /controller_epoch                        the number of elections of a controller so far
    /controller                              {"version": 1, "brokerid": N, "timestamp": MS}             ephemeral
    /brokers/ids/N                           {"version": 5, "endpoints": [...], ...}                    ephemeral
    /brokers/topics/T                        {"version": 3, "topic_id": ID, "partitions": {"P": [N, ...]}, ...}
    /brokers/topics/T/partitions/P/state     {"version": 1, "leader": N, "leader_epoch": E, "isr": [...], ...}
    /config/topics/T                         {"version": 1, "config": {NAME: VALUE}}
    /config/brokers/N, .../<default>         the same

Each kind of node has one function that writes it and one that reads it. What cannot be read raises MalformedNode.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from broker.controller.images import BrokerImage, Endpoint, PartitionImage
from broker.controller.uuids import uuid_from_string, uuid_to_string
from broker.registry.registry import Node

BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CLUSTER_ID: Final = "/cluster/id"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
DEFAULT_BROKER: Final = "<default>"

SKELETON: Final = ("/brokers", BROKER_IDS, TOPICS, "/cluster", "/config", TOPIC_CONFIGS, BROKER_CONFIGS)
"""The nodes without data that the others hang on, parents first."""


Fields = dict[str, Any]
Parsed = TypeVar("Parsed")

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError)


class MalformedNode(Exception):
    """A node does not say what a node at its path should."""


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker_id: int | None) -> str:
    """Of one broker, or with None of what holds for all of them."""
    return f"{BROKER_CONFIGS}/{DEFAULT_BROKER if broker_id is None else broker_id}"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def write_cluster_id(cluster_id: str) -> bytes:
    return _write({"version": "1", "id": cluster_id})


def read_cluster_id(node: Node) -> str:
    return _read(CLUSTER_ID, node, lambda fields: str(fields["id"]))


def write_controller(broker_id: int, timestamp: int) -> bytes:
    return _write({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp)})


def read_controller(node: Node) -> int:
    return _read(CONTROLLER, node, lambda fields: int(fields["brokerid"]))


def write_controller_epoch(epoch: int) -> bytes:
    return b"%d" % epoch


def read_controller_epoch(node: Node) -> int:
    try:
        return int(node.data)
    except ValueError as error:
        raise MalformedNode(f"{CONTROLLER_EPOCH}: {error}") from error


def write_broker(broker: BrokerImage, timestamp: int) -> bytes:
    first = broker.endpoints[0]
    return _write(
        {
            "version": 5,
            "host": first.host,
            "port": first.port,
            "jmx_port": -1,
            "timestamp": str(timestamp),
            "endpoints": [_endpoint_url(endpoint) for endpoint in broker.endpoints],
            "listener_security_protocol_map": {e.name: e.security_protocol for e in broker.endpoints},
            "rack": broker.rack,
            "features": {},
        }
    )


def read_broker(broker_id: int, node: Node) -> BrokerImage:
    def parse(fields: Fields) -> BrokerImage:
        protocols = fields["listener_security_protocol_map"]
        endpoints = []
        for url in fields["endpoints"]:
            name, _, address = url.partition("://")
            host, _, port = address.rpartition(":")
            endpoints.append(Endpoint(name, protocols[name], host.removeprefix("[").removesuffix("]"), int(port)))
        return BrokerImage(broker_id, tuple(endpoints), fields.get("rack"))

    return _read(broker_path(broker_id), node, parse)


class Assignment(NamedTuple):
    """What a topic's node says: its id, and each partition's replicas, by index."""

    topic_id: bytes
    replicas: Sequence[tuple[int, ...]]
    adding_replicas: Mapping[int, tuple[int, ...]]
    removing_replicas: Mapping[int, tuple[int, ...]]


def write_topic(topic_id: bytes, partitions: Iterable[PartitionImage]) -> bytes:
    partitions = list(partitions)
    return _write(
        {
            "version": 3,
            "topic_id": uuid_to_string(topic_id),
            "partitions": {str(p.partition_index): p.replica_nodes for p in partitions},
            "adding_replicas": {str(p.partition_index): p.adding_replicas for p in partitions if p.adding_replicas},
            "removing_replicas": {
                str(p.partition_index): p.removing_replicas for p in partitions if p.removing_replicas
            },
        }
    )


def read_topic(topic: str, node: Node) -> Assignment:
    def parse(fields: Fields) -> Assignment:
        partitions = fields["partitions"]
        return Assignment(
            uuid_from_string(fields["topic_id"]),
            [tuple(partitions[str(index)]) for index in range(len(partitions))],
            {int(index): tuple(replicas) for index, replicas in fields["adding_replicas"].items()},
            {int(index): tuple(replicas) for index, replicas in fields["removing_replicas"].items()},
        )

    return _read(topic_path(topic), node, parse)


def write_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    return _write_state(partition.leader_id, partition.leader_epoch, partition.isr_nodes, controller_epoch)


@lru_cache(maxsize=1024)
def _write_state(leader_id: int, leader_epoch: int, isr_nodes: tuple[int, ...], controller_epoch: int) -> bytes:
    """Remembered, since a new topic's partitions, thousands perhaps, mostly say the same."""
    return _write(
        {
            "version": 1,
            "controller_epoch": controller_epoch,
            "leader": leader_id,
            "leader_epoch": leader_epoch,
            "isr": isr_nodes,
        }
    )


class State(NamedTuple):
    """What a partition's state node says."""

    leader_id: int
    leader_epoch: int
    isr_nodes: tuple[int, ...]


def read_state(topic: str, partition: int, node: Node) -> State:
    try:
        return _parse_state(node.data)
    except _MALFORMED as error:
        raise MalformedNode(f"{state_path(topic, partition)}: {error!r}") from error


@lru_cache(maxsize=1024)
def _parse_state(data: bytes) -> State:
    """Most partitions say the same as others do, and there are thousands of them to read when a broker starts."""
    fields = json.loads(data)
    return State(fields["leader"], fields["leader_epoch"], tuple(fields["isr"]))


def write_configs(configs: Mapping[str, str]) -> bytes:
    return _write({"version": 1, "config": dict(configs)})


def read_configs(path: str, node: Node) -> dict[str, str]:
    return _read(path, node, lambda fields: dict(fields["config"]))


def _endpoint_url(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.name}://{host}:{endpoint.port}"


def _write(fields: Fields) -> bytes:
    return _ENCODER.encode(fields).encode()


def _read(path: str, node: Node, parse: Callable[[Fields], Parsed]) -> Parsed:
    try:
        return parse(json.loads(node.data))
    except _MALFORMED as error:
        raise MalformedNode(f"{path}: {error!r}") from error

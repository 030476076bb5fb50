"""Where the cluster's facts are in the tree, and what their nodes contain.

Paths and JSON are those that Kafka kept in ZooKeeper:

    /cluster/id                              {"version": "1", "id": ID}
    /controller_epoch                        the number of elections of a controller so far
    /controller                              {"version": 2, "brokerid": N, "timestamp": MS, ...}        ephemeral
    /brokers/ids/N                           {"version": 5, "endpoints": [...], ...}                    ephemeral
    /brokers/topics/T                        {"version": 3, "topic_id": ID, "partitions": {"P": [N, ...]}, ...}
    /brokers/topics/T/partitions/P/state     {"version": 1, "leader": N, "leader_epoch": E, "isr": [...], ...}
    /admin/delete_topics/ID                  a topic that was deleted, and the brokers that may still have folders of it
    /config/topics/T                         {"version": 1, "config": {NAME: VALUE}}
    /config/brokers/N, .../<default>         the same
    /config/groups/G                         the same; Apache Kafka 3.9 has none of these
    /config/users/U, /config/clients/C,
      /config/users/U/clients/C, /config/ips/A   the same: quotas, and a user's SCRAM credentials
    /config/changes/config_change_SEQUENCE   {"version": 2, "entity_path": "topics/T"}: these settings were altered
    /log_dir_event_notification/log_dir_event_SEQUENCE   {"version": 1, "broker": N, "event": 1}: look at its disk
    /latest_producer_id_block                {"version": 1, "broker": N, "block_start": ID, "block_end": ID}
    /feature                                 {"features": {}, "version": 2, "status": 1}

Each kind of node has one function that writes it and one that reads it, which raises MalformedNode.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from barnabas.broker.controller.images import BrokerImage, Endpoint, PartitionImage
from barnabas.broker.controller.uuids import uuid_from_string, uuid_to_string
from barnabas.broker.quotas.entities import DEFAULT, Default, Entity, Name
from barnabas.broker.registry.registry import Node

BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CLUSTER_ID: Final = "/cluster/id"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
GROUP_CONFIGS: Final = "/config/groups"
USER_CONFIGS: Final = "/config/users"
CLIENT_CONFIGS: Final = "/config/clients"
IP_CONFIGS: Final = "/config/ips"
DEFAULT_BROKER: Final = "<default>"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE: Final = "/config/changes/config_change_"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
LOG_DIR_EVENT: Final = "/log_dir_event_notification/log_dir_event_"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
FEATURE: Final = "/feature"

DELETIONS: Final = "/admin/delete_topics"

SKELETON: Final = (
    *("/consumers", "/brokers", BROKER_IDS, TOPICS, "/brokers/seqid", "/cluster"),
    *(
        "/config",
        CONFIG_CHANGES,
        TOPIC_CONFIGS,
        BROKER_CONFIGS,
        GROUP_CONFIGS,
        CLIENT_CONFIGS,
        USER_CONFIGS,
        IP_CONFIGS,
    ),
    *("/admin", DELETIONS, "/isr_change_notification", LOG_DIR_EVENTS),
)
"""The parent nodes without data, from the top. This includes all that Kafka 3.9 expects, even those of no use here."""


Fields = dict[str, Any]
Parsed = TypeVar("Parsed")

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


class MalformedNode(Exception):
    """A node does not contain what a node at its path should."""


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
    """The path for one broker, or for all brokers with None."""
    return f"{BROKER_CONFIGS}/{DEFAULT_BROKER if broker_id is None else broker_id}"


def deletion_path(topic_id: bytes) -> str:
    return f"{DELETIONS}/{uuid_to_string(topic_id)}"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def write_cluster_id(cluster_id: str) -> bytes:
    return _write({"version": "1", "id": cluster_id})


def read_cluster_id(node: Node) -> str:
    return _read(CLUSTER_ID, node, lambda fields: str(fields["id"]))


def write_controller(broker_id: int, timestamp: int) -> bytes:
    return _write({"version": 2, "brokerid": broker_id, "timestamp": str(timestamp), "kraftControllerEpoch": -1})


def read_controller(node: Node) -> int:
    return _read(CONTROLLER, node, lambda fields: int(fields["brokerid"]))


def write_controller_epoch(epoch: int) -> bytes:
    return b"%d" % epoch


def read_controller_epoch(node: Node) -> int:
    try:
        return int(node.data)
    except ValueError as error:
        raise MalformedNode(f"{CONTROLLER_EPOCH}: {error}") from error


def read_broker_id(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise MalformedNode(f"{BROKER_IDS}/{name}: not a broker's id") from None


def write_broker(broker: BrokerImage, timestamp: int, directory_id: str = "") -> bytes:
    """`directory_id` tells this broker from another one that was given the same id by mistake.

    Fields that Kafka does not know come last, and only if they have a value.
    """
    first = broker.endpoints[0]
    fields: Fields = {
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
    if directory_id:
        fields["directory_id"] = directory_id
    if broker.after_crash:
        fields["after_crash"] = True
    return _write(fields)


def broker_after_recovery(broker_id: int, node: Node) -> bytes:
    """A broker's node once every broker has been told that its last run ended in a crash."""

    def parse(fields: Fields) -> bytes:
        fields.pop("after_crash", None)
        return _write(fields)

    return _read(broker_path(broker_id), node, parse)


def read_directory_id(broker_id: int, node: Node) -> str:
    """Which data directory a broker has; "" if it does not say so, as Kafka's do not."""
    return _read(broker_path(broker_id), node, lambda fields: str(fields.get("directory_id", "")))


def read_broker(broker_id: int, node: Node) -> BrokerImage:
    def parse(fields: Fields) -> BrokerImage:
        protocols = fields["listener_security_protocol_map"]
        endpoints = []
        for url in fields["endpoints"]:
            name, _, address = url.partition("://")
            host, _, port = address.rpartition(":")
            endpoints.append(Endpoint(name, protocols[name], host.removeprefix("[").removesuffix("]"), int(port)))
        after_crash = fields.get("after_crash") is True
        return BrokerImage(broker_id, tuple(endpoints), fields.get("rack"), node.czxid, after_crash)

    return _read(broker_path(broker_id), node, parse)


class Assignment(NamedTuple):
    """The content of a topic's node: its id, and each partition's replicas, by index."""

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
            [_numbers(partitions[str(index)]) for index in range(len(partitions))],
            {int(index): _numbers(replicas) for index, replicas in fields["adding_replicas"].items()},
            {int(index): _numbers(replicas) for index, replicas in fields["removing_replicas"].items()},
        )

    return _read(topic_path(topic), node, parse)


def write_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    return _write_state(partition.leader_id, partition.leader_epoch, partition.isr_nodes, controller_epoch)


@lru_cache(maxsize=1024)
def _write_state(leader_id: int, leader_epoch: int, isr_nodes: tuple[int, ...], controller_epoch: int) -> bytes:
    """Cached, because the states of a new topic's partitions, perhaps thousands, are mostly equal."""
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
    """The content of a partition's state node."""

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
    """Cached, because thousands of states are read when a broker starts, and most are equal."""
    fields = json.loads(data)
    leader_id, leader_epoch = _numbers([fields["leader"], fields["leader_epoch"]])
    return State(leader_id, leader_epoch, _numbers(fields["isr"]))


def sanitized(name: str) -> str:
    """The name of a user in a path, as Kafka writes it."""
    return _step(quote(name, safe="").replace("~", "%7E"))


def _step(name: str) -> str:
    """A quoted name as a step of a path, which "." and ".." cannot be."""
    return name.replace(".", "%2E") if name in (".", "..") else name


def group_config_path(group_id: str) -> str:
    return f"{GROUP_CONFIGS}/{_step(quote(group_id, safe=''))}"


def user_config_path(user: str) -> str:
    return f"{USER_CONFIGS}/{sanitized(user)}"


def quota_path(entity: Entity) -> str:
    """Where the quotas of a user, a client id, a client id of a user or an address are."""
    user, client_id, ip = (None if name is None else _entity_name(name) for name in entity)
    if ip is not None:
        return f"{IP_CONFIGS}/{ip}"
    if user is None:
        return f"{CLIENT_CONFIGS}/{client_id}"
    return f"{USER_CONFIGS}/{user}" if client_id is None else f"{USER_CONFIGS}/{user}/clients/{client_id}"


def quota_entity(path: str) -> Entity | None:
    """Whose quotas are at a path; None if it has no quotas."""
    match path.split("/")[2:]:
        case ["users", user]:
            return Entity(user=_read_entity_name(user))
        case ["users", user, "clients", client_id]:
            return Entity(user=_read_entity_name(user), client_id=_read_entity_name(client_id))
        case ["clients", client_id]:
            return Entity(client_id=_read_entity_name(client_id))
        case ["ips", ip]:
            return Entity(ip=_read_entity_name(ip))
    return None


def _entity_name(name: Name) -> str:
    return name.value if isinstance(name, Default) else sanitized(name)


def _read_entity_name(text: str) -> Name:
    return DEFAULT if text == DEFAULT.value else unquote(text)


def write_configs(configs: Mapping[str, str]) -> bytes:
    return _write({"version": 1, "config": dict(configs)})


def read_configs(path: str, node: Node) -> dict[str, str]:
    def parse(fields: Fields) -> dict[str, str]:
        configs = dict(fields["config"])
        if not all(isinstance(value, str) for value in configs.values()):
            raise TypeError("a setting whose value is not a text")
        return configs

    if not node.data and quota_entity(path) is not None:
        return {}  # as in Kafka, a user may be there only because of a client id of that user
    return _read(path, node, parse)


def write_config_change(entity_path: str) -> bytes:
    return _write({"version": 2, "entity_path": entity_path})


def read_config_change(path: str, node: Node) -> str:
    """Whose settings were altered: "topics/T", "brokers/N", "brokers/<default>", "users/U" and others."""
    return _read(path, node, lambda fields: str(fields["entity_path"]))


def write_log_dir_event(broker_id: int) -> bytes:
    return _write({"version": 1, "broker": broker_id, "event": 1})


def read_log_dir_event(path: str, node: Node) -> int:
    """Which broker's disk has failed, or works again."""
    return _read(path, node, lambda fields: int(fields["broker"]))


def write_deletion(brokers: Iterable[int]) -> bytes:
    return _write({"version": 1, "brokers": sorted(brokers)})


def read_deletion(path: str, node: Node) -> frozenset[int] | None:
    """The brokers that may still have folders of a deleted topic; None if that is not known."""
    if not node.data:
        return None
    return _read(path, node, lambda fields: frozenset(_numbers(fields["brokers"])))


def write_producer_id_block(broker_id: int, start: int, count: int) -> bytes:
    block = {"version": 1, "broker": broker_id, "block_start": str(start), "block_end": str(start + count - 1)}
    return _write(block)


def read_producer_id_block_end(node: Node | None) -> int:
    """The last producer id that was allocated; -1: none. Kafka creates the node before it has data."""
    if node is None or not node.data:
        return -1
    return _read(PRODUCER_ID_BLOCK, node, lambda fields: int(fields["block_end"]))


def write_feature() -> bytes:
    return _write({"features": {}, "version": 2, "status": 1})


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    if not all(isinstance(value, int) for value in values):
        raise TypeError(f"not numbers: {values}")
    return tuple(values)


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

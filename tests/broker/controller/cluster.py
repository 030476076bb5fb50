"""Small clusters for the tests of decisions."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.broker.controller import znodes
from barnabas.broker.controller.elections import all_partitions
from barnabas.broker.controller.images import BrokerImage, Endpoint, PartitionImage
from barnabas.broker.controller.results import Decision, PartitionResult, TopicResult
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Create, Delete, Operation, Set
from barnabas.protocol.errors import ErrorCode
from tests.broker.registry.memory import MemoryRegistry

TIMESTAMP = 1_700_000_000_000


class Cluster:
    """A registry with some brokers and topics in it, and the view of it."""

    def __init__(self, brokers: Iterable[int] = (1,), topics: Mapping[str, Sequence[tuple[int, ...]]] | None = None):
        self.registry = MemoryRegistry()
        self.registry.apply([Create(path) for path in znodes.SKELETON])
        self.registry.apply([Create(znodes.CONTROLLER_EPOCH, b"1")])
        for broker_id in brokers:
            self.registry.apply([Create(znodes.broker_path(broker_id), broker_data(broker_id), ephemeral=True)])
        for name, replicas in (topics or {}).items():
            self.registry.apply(topic_operations(name, replicas))
        self.view = ClusterView(self.registry)

    def carry_out(self, decision: Decision[TopicResult] | Decision[PartitionResult]) -> None:
        self.registry.apply(decision.operations)

    def lose_broker(self, broker_id: int) -> None:
        self.registry.apply([Delete(znodes.broker_path(broker_id))])


def broker_data(broker_id: int) -> bytes:
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)
    return znodes.write_broker(BrokerImage(broker_id, (endpoint,)), TIMESTAMP)


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b"\xff")[:16]


def topic_operations(
    name: str, replicas: Sequence[tuple[int, ...]], configs: Mapping[str, str] | None = None
) -> list[Operation]:
    """A topic whose partitions are led by their first replicas, with all of them in sync."""
    partitions = [PartitionImage(index, brokers, brokers[0], 0, brokers) for index, brokers in enumerate(replicas)]
    operations: list[Operation] = [
        Create(znodes.topic_config_path(name), znodes.write_configs(configs or {})),
        Create(znodes.topic_path(name), znodes.write_topic(topic_id_of(name), partitions)),
        Create(znodes.partitions_path(name)),
    ]
    for partition in partitions:
        operations.append(Create(znodes.partition_path(name, partition.partition_index)))
        state = znodes.write_state(partition, controller_epoch=1)
        operations.append(Create(znodes.state_path(name, partition.partition_index), state))
    return operations


def codes(decision: Decision[TopicResult] | Decision[PartitionResult]) -> list[ErrorCode]:
    return [result.error_code for result in decision.results]


def raise_leader_epochs(cluster: ClusterView, broker_id: int, controller_epoch: int) -> list[Operation]:
    """A new leader epoch for every partition that a broker leads."""
    return [
        Set(
            znodes.state_path(topic, index),
            znodes.write_state(partition._replace(leader_epoch=partition.leader_epoch + 1), controller_epoch),
            partition.partition_epoch,
        )
        for topic, index in all_partitions(cluster)
        if (partition := cluster.topics[topic].partitions[index]).leader_id == broker_id
    ]

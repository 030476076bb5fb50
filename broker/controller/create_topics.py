"""Creating topics.

The checks come in Kafka's order, so that a request with several mistakes gets the error that Kafka would give:
duplicate names, too many partitions in total, the name, an existing topic, the settings, then counts or the manual
assignment.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.controller import znodes
from barnabas.broker.controller.assignment import Pick, check_replicas, spread_replicas
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.results import (
    MAX_PARTITIONS_PER_REQUEST,
    TOO_MANY_PARTITIONS,
    Decision,
    Refused,
    TopicResult,
    check_quota,
    duplicates,
)
from barnabas.broker.controller.topic_names import CLUSTER_METADATA_TOPIC, MetricNames, problem_with_name
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.quotas.mutations import Admit, everything
from barnabas.broker.registry.tree_operations import Create, Operation, Set
from barnabas.protocol.errors import ErrorCode

USE_DEFAULT = -1

# ZooKeeper takes transactions of up to a megabyte. The states of more partitions follow in transactions of their own
# (failover.first_states), as in Kafka: until then, a partition has replicas but no leader.
STATES_AT_ONCE: Final = 1000

ValidateConfigs = Callable[[Mapping[str, str | None]], Mapping[str, str]]
"""Returns the settings of a topic as they will be stored; raises InvalidConfigError."""


class NewTopic(NamedTuple):
    """A requested topic. With assignments (partition, replicas), the two numbers stay at -1."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = MappingProxyType({})


class TopicSettings(NamedTuple):
    """What the decision needs to know besides the cluster."""

    num_partitions: int
    replication_factor: int
    validate_configs: ValidateConfigs
    new_topic_id: Callable[[], bytes]
    pick: Pick


def check_request(
    topics: Sequence[NewTopic], settings: TopicSettings
) -> tuple[Sequence[NewTopic], Sequence[TopicResult]]:
    """The topics that a request as a whole does not rule out, and the results of the others."""
    repeated = duplicates(topic.name for topic in topics)
    results = [
        TopicResult(name, error_code=ErrorCode.INVALID_REQUEST, error_message="The topic is named twice")
        for name in repeated
    ]
    wanted = [topic for topic in topics if topic.name not in repeated] if repeated else topics
    if sum(_count(topic, settings) for topic in wanted) > MAX_PARTITIONS_PER_REQUEST:
        error = ErrorCode.POLICY_VIOLATION
        refused = [TopicResult(topic.name, error_code=error, error_message=TOO_MANY_PARTITIONS) for topic in wanted]
        return (), refused + results
    return wanted, results


def create_topics(
    cluster: ClusterView, topics: Sequence[NewTopic], settings: TopicSettings, admit: Admit = everything
) -> Decision[TopicResult]:
    wanted, results = check_request(topics, settings)
    metric_names = MetricNames(cluster.topics)
    created: list[TopicResult] = []
    operations: list[Operation] = []
    room = STATES_AT_ONCE
    for topic in wanted:
        try:
            _check_name(cluster, topic.name, metric_names)
            configs = _check_configs(topic, settings)
            replicas = _replicas(cluster, topic, settings)
            check_quota(admit, topic.name, len(replicas))
        except Refused as refusal:
            created.append(TopicResult(topic.name, error_code=refusal.error_code, error_message=refusal.message))
            continue
        topic_id = settings.new_topic_id()
        created.append(
            TopicResult(
                topic.name,
                topic_id,
                num_partitions=len(replicas),
                replication_factor=len(replicas[0]),
                configs=configs,
            )
        )
        operations += _operations(cluster, topic.name, topic_id, replicas, configs, room)
        room = max(0, room - len(replicas))
    return Decision([*created, *results], operations)


def partition_operations(cluster: ClusterView, topic: str, partitions: Sequence[PartitionImage]) -> list[Operation]:
    """The operations that create partitions, without the topic's own node. All replicas are in sync: they are empty."""
    operations: list[Operation] = []
    for partition in partitions:
        index = partition.partition_index
        operations.append(Create(znodes.partition_path(topic, index)))
        state = znodes.write_state(partition, cluster.controller_epoch)
        operations.append(Create(znodes.state_path(topic, index), state))
    return operations


def new_partition(index: int, replicas: tuple[int, ...]) -> PartitionImage:
    return PartitionImage(index, replicas, leader_id=replicas[0], leader_epoch=0, isr_nodes=replicas)


def _operations(
    cluster: ClusterView,
    topic: str,
    topic_id: bytes,
    replicas: Sequence[tuple[int, ...]],
    configs: Mapping[str, str],
    room: int,
) -> list[Operation]:
    """The operations that create a topic, with the states of no more than `room` partitions."""
    partitions = [new_partition(index, brokers) for index, brokers in enumerate(replicas)]
    path, data = znodes.topic_config_path(topic), znodes.write_configs(configs)
    return [
        Set(path, data) if cluster.has_leftover_configs(topic) else Create(path, data),
        Create(znodes.topic_path(topic), znodes.write_topic(topic_id, partitions)),
        Create(znodes.partitions_path(topic)),
        *partition_operations(cluster, topic, partitions[:room]),
    ]


def _count(topic: NewTopic, settings: TopicSettings) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return settings.num_partitions if topic.num_partitions == USE_DEFAULT else max(0, topic.num_partitions)


def _check_name(cluster: ClusterView, name: str, metric_names: MetricNames) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"The name {name} is reserved")
    problem = problem_with_name(name)
    if problem:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if cluster.topic(name):
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = metric_names.collision(name)
    if other:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' would share its metrics with topic '{other}'")


def _check_configs(topic: NewTopic, settings: TopicSettings) -> Mapping[str, str]:
    try:
        return settings.validate_configs(topic.configs)
    except InvalidConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from error


def _replicas(cluster: ClusterView, topic: NewTopic, settings: TopicSettings) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _manual_replicas(cluster, topic)
    if topic.replication_factor != USE_DEFAULT and topic.replication_factor < 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is at least 1, or -1 for the default"
        )
    if topic.num_partitions != USE_DEFAULT and topic.num_partitions < 1:
        raise Refused(ErrorCode.INVALID_PARTITIONS, "The number of partitions is at least 1, or -1 for the default")
    brokers = racks_of(cluster)
    factor = settings.replication_factor if topic.replication_factor == USE_DEFAULT else topic.replication_factor
    start, shift = settings.pick(len(brokers) or 1), settings.pick(len(brokers) or 1)
    return spread_replicas(brokers, _count(topic, settings), factor, start=start, shift=shift)


def racks_of(cluster: ClusterView) -> dict[int, str | None]:
    return {broker_id: broker.rack for broker_id, broker in cluster.brokers.items()}


def _manual_replicas(cluster: ClusterView, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != USE_DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, "With a manual assignment, the replication factor must be -1")
    if topic.num_partitions != USE_DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, "With a manual assignment, the number of partitions must be -1")
    replicas: dict[int, tuple[int, ...]] = {}
    for partition, brokers in topic.assignments:
        if partition in replicas:
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {partition} is assigned twice")
        replication_factor = len(topic.assignments[0][1]) if replicas else None
        check_replicas(brokers, cluster.brokers, replication_factor)
        replicas[partition] = tuple(brokers)
    if sorted(replicas) != list(range(len(replicas))):
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions are numbered from 0, without gaps")
    return [replicas[partition] for partition in range(len(replicas))]

"""Moving partitions to other brokers: what is asked for is noted in the topic's node, as replicas to add and remove.

While a partition moves, its replicas are the old and the new ones together.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.controller import znodes
from broker.controller.assignment import check_replicas
from broker.controller.decisions import Decision, PartitionResult, Refused
from broker.controller.images import PartitionImage
from broker.controller.view import ClusterView
from broker.registry.operations import Operation, Set
from protocol.errors import ErrorCode


class Reassignment(NamedTuple):
    """The replicas that a partition shall have; None calls off the move that is under way."""

    topic: str
    partition_index: int
    replicas: tuple[int, ...] | None


def alter_partition_reassignments(
    cluster: ClusterView, reassignments: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
) -> Decision[PartitionResult]:
    results: list[PartitionResult] = []
    changed: dict[str, list[PartitionImage]] = {}  # each topic with a partition that moves, as it will be
    for topic, index, replicas in reassignments:
        try:
            partition = _find(cluster, changed, topic, index)
            if replicas is not None:
                _check(cluster, partition, replicas, allow_replication_factor_change)
            target = _called_off(partition) if replicas is None else _moved(partition, replicas)
        except Refused as refusal:
            results.append(PartitionResult(topic, index, refusal.error_code, refusal.message))
            continue
        results.append(PartitionResult(topic, index))
        if target != partition:
            changed.setdefault(topic, list(cluster.topics[topic].partitions))[index] = target
    return Decision(results, [_operation(cluster, topic, partitions) for topic, partitions in changed.items()])


def list_partition_reassignments(
    cluster: ClusterView, partitions: Sequence[tuple[str, int]] | None
) -> list[tuple[str, PartitionImage]]:
    """Those of `partitions` that are on the move, by topic; with None, of all there are."""
    if partitions is None:
        every = ((topic.name, partition) for topic in cluster.topics.values() for partition in topic.partitions)
        return [(topic, partition) for topic, partition in every if partition.is_reassigning]
    asked = ((topic, cluster.partition(topic, index)) for topic, index in partitions)
    return [(topic, partition) for topic, partition in asked if partition and partition.is_reassigning]


def _find(cluster: ClusterView, changed: dict[str, list[PartitionImage]], topic: str, index: int) -> PartitionImage:
    partition = cluster.partition(topic, index)
    if partition is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}")
    return changed[topic][index] if topic in changed else partition


def _check(
    cluster: ClusterView, partition: PartitionImage, replicas: tuple[int, ...], allow_replication_factor_change: bool
) -> None:
    check_replicas(replicas, cluster.brokers, None)
    present = len(_settled_replicas(partition))
    if not allow_replication_factor_change and len(replicas) != present:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {present} to {len(replicas)}",
        )


def _settled_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas apart from those that are only on their way in."""
    return tuple(replica for replica in partition.replica_nodes if replica not in partition.adding_replicas)


def _called_off(partition: PartitionImage) -> PartitionImage:
    if not partition.is_reassigning:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return partition._replace(replica_nodes=_settled_replicas(partition), adding_replicas=(), removing_replicas=())


def _moved(partition: PartitionImage, replicas: tuple[int, ...]) -> PartitionImage:
    settled = _settled_replicas(partition)
    removing = tuple(replica for replica in settled if replica not in replicas)
    return partition._replace(
        replica_nodes=replicas + removing,
        adding_replicas=tuple(replica for replica in replicas if replica not in settled),
        removing_replicas=removing,
    )


def _operation(cluster: ClusterView, topic: str, partitions: Sequence[PartitionImage]) -> Operation:
    image = cluster.topics[topic]
    return Set(znodes.topic_path(topic), znodes.write_topic(image.topic_id, partitions), image.version)

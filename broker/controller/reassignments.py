"""Moving partitions to other brokers: the topic's node records the replicas to add and remove.

While a partition moves, its replicas are the old and the new ones together. When all new ones are in sync, the old ones
go. Each step is one transaction, and starts a new leader epoch: so the next leader finds the partition in one step or
in the next, and removed replicas no longer count.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from barnabas.broker.controller import znodes
from barnabas.broker.controller.assignment import check_replicas
from barnabas.broker.controller.images import NO_LEADER, PartitionImage, TopicImage
from barnabas.broker.controller.leader_selection import for_reassignment
from barnabas.broker.controller.results import Decision, PartitionResult, Refused
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Operation, Set
from barnabas.protocol.errors import ErrorCode

UncleanAllowed = Callable[[TopicImage], bool]
"""Whether a replica that is not in sync may lead a topic's partitions."""


class Reassignment(NamedTuple):
    """The replicas that a partition will have; None cancels the current reassignment."""

    topic: str
    partition_index: int
    replicas: tuple[int, ...] | None


def alter_partition_reassignments(
    cluster: ClusterView,
    reassignments: Sequence[Reassignment],
    *,
    allow_replication_factor_change: bool = True,
    unclean_allowed: UncleanAllowed = lambda topic: False,
) -> Decision[PartitionResult]:
    results: list[PartitionResult] = []
    changed: dict[str, dict[int, PartitionImage]] = {}  # the future partitions of each topic that changes
    for topic, index, replicas in reassignments:
        try:
            partition = _find(cluster, changed, topic, index)
            unclean = unclean_allowed(cluster.topics[topic])
            if replicas is None:
                target = _called_off(partition, cluster.brokers, unclean)
            else:
                _check(cluster, partition, replicas, allow_replication_factor_change)
                target = _moved(partition, replicas, cluster.brokers, unclean)
        except Refused as refusal:
            results.append(PartitionResult(topic, index, refusal.error_code, refusal.message))
            continue
        results.append(PartitionResult(topic, index))
        if target != partition:
            changed.setdefault(topic, {})[index] = target
    return Decision(results, _operations(cluster, changed))


def finish_reassignments(cluster: ClusterView, topics: Iterable[TopicImage]) -> list[Operation]:
    """The operations that end the moves whose new replicas are all in sync."""
    changed: dict[str, dict[int, PartitionImage]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.is_reassigning:
                finished = finished_move(partition, cluster.brokers)
                if finished is not None:
                    changed.setdefault(topic.name, {})[partition.partition_index] = finished
    return _operations(cluster, changed)


def finished_move(partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
    """A partition with only its new replicas, led by one of them. None as long as that is not possible."""
    target = target_replicas(partition)
    if not partition.is_reassigning or not set(target) <= set(partition.isr_nodes):
        return None
    if partition.leader_id in target and partition.leader_id in live:
        led: PartitionImage | None = partition._replace(leader_epoch=partition.leader_epoch + 1)
    else:
        led = for_reassignment(partition, target, live)
    if led is None:
        return None
    isr = tuple(member for member in partition.isr_nodes if member in target)
    return led._replace(replica_nodes=target, isr_nodes=isr, adding_replicas=(), removing_replicas=())


def target_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas that a partition will have when its move has ended."""
    return tuple(replica for replica in partition.replica_nodes if replica not in partition.removing_replicas)


def _find(
    cluster: ClusterView, changed: dict[str, dict[int, PartitionImage]], topic: str, index: int
) -> PartitionImage:
    partition = cluster.partition(topic, index)
    if partition is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}")
    return changed.get(topic, {}).get(index, partition)


def _check(
    cluster: ClusterView, partition: PartitionImage, replicas: tuple[int, ...], allow_replication_factor_change: bool
) -> None:
    present = _settled_replicas(partition)
    # Brokers that are added must be alive. Those that already have the partition may come back.
    check_replicas(replicas, {*cluster.brokers, *present}, None)
    if not allow_replication_factor_change and len(replicas) != len(present):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {len(present)} to {len(replicas)}",
        )


def _settled_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas without those that are being added."""
    return tuple(replica for replica in partition.replica_nodes if replica not in partition.adding_replicas)


def _called_off(partition: PartitionImage, live: Collection[int], unclean: bool) -> PartitionImage:
    if not partition.is_reassigning:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return _with_replicas(partition, _settled_replicas(partition), (), (), live, unclean)


def _moved(
    partition: PartitionImage, replicas: tuple[int, ...], live: Collection[int], unclean: bool
) -> PartitionImage:
    settled = _settled_replicas(partition)
    removing = tuple(replica for replica in settled if replica not in replicas)
    adding = tuple(replica for replica in replicas if replica not in settled)
    moved = _with_replicas(partition, replicas + removing, adding, removing, live, unclean)
    if not moved.is_reassigning or moved.adding_replicas:
        return moved
    return finished_move(moved, live) or moved


def _with_replicas(
    partition: PartitionImage,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    live: Collection[int],
    unclean: bool,
) -> PartitionImage:
    """A partition with other replicas. Those that it no longer has neither lead it nor count as in sync."""
    changed = partition._replace(replica_nodes=replicas, adding_replicas=adding, removing_replicas=removing)
    if set(replicas) == set(partition.replica_nodes):
        return changed  # perhaps in another order
    isr = tuple(member for member in partition.isr_nodes if member in replicas)
    leader_id = partition.leader_id
    if leader_id not in replicas:
        leader_id = next((replica for replica in replicas if replica in isr and replica in live), NO_LEADER)
    if not isr:
        if not unclean:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "None of the replicas that would remain is in sync; an unclean election would be needed",
            )
        leader_id = next((replica for replica in replicas if replica in live), NO_LEADER)
        isr = replicas[:1] if leader_id == NO_LEADER else (leader_id,)
    return changed._replace(leader_id=leader_id, isr_nodes=isr, leader_epoch=partition.leader_epoch + 1)


def _operations(cluster: ClusterView, changed: dict[str, dict[int, PartitionImage]]) -> list[Operation]:
    operations: list[Operation] = []
    for name, partitions in changed.items():
        topic = cluster.topics[name]
        future = [partitions.get(partition.partition_index, partition) for partition in topic.partitions]
        operations.append(Set(znodes.topic_path(name), znodes.write_topic(topic.topic_id, future), topic.version))
        for index, partition in partitions.items():
            if partition.leader_epoch != topic.partitions[index].leader_epoch:
                state = znodes.write_state(partition, cluster.controller_epoch)
                operations.append(Set(znodes.state_path(name, index), state, partition.partition_epoch))
    return operations

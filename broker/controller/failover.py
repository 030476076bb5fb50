"""What happens to partitions when brokers die, come back, or restart: pure decisions over the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.broker.controller import znodes
from barnabas.broker.controller.create_topics import partition_operations
from barnabas.broker.controller.images import NO_LEADER, PartitionImage, TopicImage
from barnabas.broker.controller.leader_selection import for_shutdown, without_dead_replicas, without_failed_replicas
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.registry import Node
from barnabas.broker.registry.tree_operations import Create, Operation, Set
from barnabas.protocol.topic_partition import TopicPartition

UncleanAllowed = Callable[[TopicImage], bool]


class Brokers(NamedTuple):
    """Which brokers can lead. Those that `restarted` are alive, but may have lost the ends of their logs."""

    live: frozenset[int]
    restarted: frozenset[int] = frozenset()
    shutting_down: frozenset[int] = frozenset()


def led(partition: PartitionImage, brokers: Brokers, *, unclean: bool) -> PartitionImage | None:
    """A partition with the leader that it should have now, in a new leader epoch. None if it can stay as it is.

    A broker that restarted is treated as one that died and came back: other members of the ISR are preferred, and a
    partition that only it can lead continues in a new leader epoch, so that nobody mistakes the end of its log for the
    old one.
    """
    if brokers.restarted:
        others = brokers.live - brokers.restarted
        moved = without_dead_replicas(partition, others, unclean=False, shutting_down=brokers.shutting_down)
        if moved is None and partition.leader_id in others:
            return None
        if moved is not None and moved.leader_id != NO_LEADER:
            return moved
    moved = without_dead_replicas(partition, brokers.live, unclean=unclean, shutting_down=brokers.shutting_down)
    if moved is None and partition.leader_id in brokers.restarted:
        return partition._replace(leader_epoch=partition.leader_epoch + 1)
    return moved


def look_after(
    cluster: ClusterView,
    topics: Iterable[TopicImage],
    brokers: Brokers,
    unclean_allowed: UncleanAllowed,
    on_unclean: Callable[[str, PartitionImage], None] = lambda topic, partition: None,
) -> Iterator[Operation]:
    """The operations that give partitions the leaders and in-sync replicas that they should have now.

    `on_unclean` hears of each partition that a replica leads which was not in sync.
    """
    for topic in topics:
        unclean = unclean_allowed(topic)
        yield from first_states(cluster, topic, brokers.live)
        for partition in topic.partitions:
            if partition.partition_epoch < 0:
                continue
            changed = led(partition, brokers, unclean=unclean)
            if changed is not None:
                if changed.leader_id != NO_LEADER and changed.leader_id not in partition.isr_nodes:
                    on_unclean(topic.name, changed)
                yield _state(cluster, topic.name, changed)


def first_states(cluster: ClusterView, topic: TopicImage, live: Collection[int]) -> Iterator[Operation]:
    """The operations for partitions that have been assigned but never had a leader.

    There were too many for one transaction, their controller died, or another tool assigned them.
    """
    has_parent = cluster.has(znodes.partitions_path(topic.name))
    for partition in topic.partitions:
        alive = tuple(replica for replica in partition.replica_nodes if replica in live)
        if partition.partition_epoch >= 0 or not alive:
            continue
        if not has_parent:
            has_parent = True
            yield Create(znodes.partitions_path(topic.name))
        first = partition._replace(leader_id=alive[0], leader_epoch=0, isr_nodes=alive)
        for operation in partition_operations(cluster, topic.name, [first]):
            if not cluster.has(operation.path):
                yield operation


def recovered(nodes: Iterable[tuple[int, Node]]) -> list[Operation]:
    """The operations that note that partitions of crashed brokers are in new leader epochs."""
    return [
        Set(znodes.broker_path(broker_id), znodes.broker_after_recovery(broker_id, node), node.version)
        for broker_id, node in nodes
    ]


def hand_over(
    cluster: ClusterView, broker_id: int, shutting_down: frozenset[int]
) -> tuple[list[Operation], list[TopicPartition]]:
    """The operations that let a broker stop: others lead, and nobody waits for it. Then the partitions that it follows.

    A partition with only one replica stays where it is.
    """
    operations: list[Operation] = []
    followed: list[TopicPartition] = []
    live = frozenset(cluster.brokers)
    for topic, partition in _replicated(cluster, broker_id):
        if partition.leader_id != broker_id:
            followed.append(TopicPartition(topic.name, partition.partition_index))
        changed = for_shutdown(partition, broker_id, live, shutting_down)
        if changed is not None:
            operations.append(_state(cluster, topic.name, changed))
    return operations, followed


def without_failed(
    cluster: ClusterView, failed: Mapping[tuple[int, TopicPartition], int], shutting_down: frozenset[int]
) -> list[Operation]:
    """The operations that make others lead the partitions that brokers cannot write to, so that nobody waits for those
    brokers.

    `failed` has the leader epoch in which a broker reported it. A partition that is in sync only there stays with it.
    """
    replicas: dict[TopicPartition, list[int]] = {}
    for (broker_id, name), leader_epoch in failed.items():
        partition = cluster.partition(*name)
        if partition is not None and partition.leader_epoch == leader_epoch:
            replicas.setdefault(name, []).append(broker_id)
    live = frozenset(cluster.brokers)
    operations: list[Operation] = []
    for name, broker_ids in replicas.items():
        partition = cluster.topics[name.topic].partitions[name.partition]
        changed = without_failed_replicas(partition, broker_ids, live, shutting_down)
        if changed is not None:
            operations.append(_state(cluster, name.topic, changed))
    return operations


def still_led(cluster: ClusterView, broker_id: int) -> list[TopicPartition]:
    """The partitions that a broker leads although others have replicas: those are not in sync, or not alive."""
    return [
        TopicPartition(topic.name, partition.partition_index)
        for topic, partition in _replicated(cluster, broker_id)
        if partition.leader_id == broker_id
    ]


def _replicated(cluster: ClusterView, broker_id: int) -> Iterator[tuple[TopicImage, PartitionImage]]:
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            if broker_id in partition.replica_nodes and len(partition.replica_nodes) > 1:
                yield topic, partition


def _state(cluster: ClusterView, topic: str, partition: PartitionImage) -> Operation:
    state = znodes.write_state(partition, cluster.controller_epoch)
    return Set(znodes.state_path(topic, partition.partition_index), state, partition.partition_epoch)

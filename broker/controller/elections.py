"""Choosing leaders: on request, or because a broker comes back."""

from collections.abc import Sequence
from enum import IntEnum

from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.results import Decision, PartitionResult, Refused
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Operation, Set
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition


class ElectionType(IntEnum):
    """Which leader is wanted. The numbers are the protocol's."""

    PREFERRED = 0  # the first replica, if it is in sync
    UNCLEAN = 1  # any live replica, where there is no leader; this may lose records


def elect_leaders(
    cluster: ClusterView, election_type: ElectionType, partitions: Sequence[TopicPartition]
) -> Decision[PartitionResult]:
    results: list[PartitionResult] = []
    elected: dict[TopicPartition, Operation] = {}
    for each in partitions:
        topic, index = each
        try:
            if each in elected:
                raise _not_needed()
            partition = cluster.partition(topic, index)
            if partition is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}")
            chosen = (
                _preferred(cluster, partition) if election_type is ElectionType.PREFERRED else _any(cluster, partition)
            )
        except Refused as refusal:
            results.append(PartitionResult(topic, index, refusal.error_code, refusal.message))
            continue
        results.append(PartitionResult(topic, index))
        elected[each] = _state_operation(topic, chosen, cluster.controller_epoch)
    return Decision(results, list(elected.values()))


def all_partitions(cluster: ClusterView) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index) for topic in cluster.topics.values() for index in range(len(topic.partitions))
    ]


def imbalanced_partitions(cluster: ClusterView, percentage: int) -> list[TopicPartition]:
    """The partitions whose leadership should return to their first replicas: those of brokers that lead too few of
    theirs.

    A broker has too few if more than `percentage` of the partitions that prefer it are led by others.
    """
    preferring: dict[int, int] = {}
    led_by_others: dict[int, list[TopicPartition]] = {}
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            broker_id = partition.replica_nodes[0]
            preferring[broker_id] = preferring.get(broker_id, 0) + 1
            if partition.leader_id != broker_id:
                here = TopicPartition(topic.name, partition.partition_index)
                led_by_others.setdefault(broker_id, []).append(here)
    return [
        each
        for broker_id, partitions in led_by_others.items()
        if broker_id in cluster.brokers and len(partitions) * 100 > percentage * preferring[broker_id]
        for each in partitions
        if _can_lead(cluster, broker_id, each)
    ]


def _can_lead(cluster: ClusterView, broker_id: int, each: TopicPartition) -> bool:
    partition = cluster.partition(*each)
    return partition is not None and not partition.is_reassigning and broker_id in partition.isr_nodes


def move_leader(cluster: ClusterView, each: TopicPartition, broker_id: int) -> Decision[PartitionResult]:
    """Make a given replica the leader, if it is alive and in sync."""
    topic, index = each
    partition = cluster.partition(topic, index)
    if partition is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Decision([PartitionResult(topic, index, unknown, f"There is no partition {topic}-{index}")])
    if partition.leader_id == broker_id:
        return Decision([PartitionResult(topic, index)])
    if broker_id not in cluster.brokers or broker_id not in partition.isr_nodes:
        reason = f"Broker {broker_id} is not alive and in sync"
        return Decision([PartitionResult(topic, index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, reason)])
    moved = partition._replace(leader_id=broker_id, leader_epoch=partition.leader_epoch + 1)
    return Decision([PartitionResult(topic, index)], [_state_operation(topic, moved, cluster.controller_epoch)])


def _preferred(cluster: ClusterView, partition: PartitionImage) -> PartitionImage:
    preferred = partition.replica_nodes[0]
    if partition.leader_id == preferred:
        raise _not_needed()
    if preferred not in cluster.brokers or preferred not in partition.isr_nodes:
        raise Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"Broker {preferred} is not alive and in sync")
    return partition._replace(leader_id=preferred, leader_epoch=partition.leader_epoch + 1)


def _any(cluster: ClusterView, partition: PartitionImage) -> PartitionImage:
    if partition.leader_id in cluster.brokers:
        raise _not_needed()
    alive = [broker_id for broker_id in partition.replica_nodes if broker_id in cluster.brokers]
    if not alive:
        raise Refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is alive")
    in_sync = [broker_id for broker_id in alive if broker_id in partition.isr_nodes]
    leader_id = (in_sync or alive)[0]
    return partition._replace(
        leader_id=leader_id, leader_epoch=partition.leader_epoch + 1, isr_nodes=tuple(in_sync or [leader_id])
    )


def _not_needed() -> Refused:
    return Refused(ErrorCode.ELECTION_NOT_NEEDED, "The partition has the leader that it should have")


def _state_operation(topic: str, partition: PartitionImage, controller_epoch: int) -> Operation:
    state = znodes.write_state(partition, controller_epoch)
    return Set(znodes.state_path(topic, partition.partition_index), state, partition.partition_epoch)

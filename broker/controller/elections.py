"""Choosing leaders: because somebody asks for it, or because a broker comes back."""

from collections.abc import Sequence
from enum import IntEnum

from broker.controller import znodes
from broker.controller.decisions import Decision, PartitionResult, Refused
from broker.controller.images import PartitionImage
from broker.controller.view import ClusterView
from broker.registry.operations import Operation, Set
from protocol.errors import ErrorCode


class ElectionType(IntEnum):
    """Which leader is wanted. The numbers are the protocol's."""

    PREFERRED = 0  # the first replica, if it is in sync
    UNCLEAN = 1  # any live replica, where there is no leader; this may lose records


def elect_leaders(
    cluster: ClusterView, election_type: ElectionType, partitions: Sequence[tuple[str, int]] | None
) -> Decision[PartitionResult]:
    """Elect leaders for `partitions`. With None, for all of them, and only what was done or failed is answered."""
    of_all = partitions is None
    asked = partitions if partitions is not None else _all_partitions(cluster)
    results: list[PartitionResult] = []
    elected: dict[tuple[str, int], Operation] = {}
    for topic, index in asked:
        try:
            if (topic, index) in elected:
                raise _not_needed()
            partition = cluster.partition(topic, index)
            if partition is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}")
            chosen = (
                _preferred(cluster, partition) if election_type is ElectionType.PREFERRED else _any(cluster, partition)
            )
        except Refused as refusal:
            if not (of_all and refusal.error_code is ErrorCode.ELECTION_NOT_NEEDED):
                results.append(PartitionResult(topic, index, refusal.error_code, refusal.message))
            continue
        results.append(PartitionResult(topic, index))
        elected[topic, index] = _state_operation(topic, chosen, cluster.controller_epoch)
    return Decision(results, list(elected.values()))


def raise_leader_epochs(cluster: ClusterView, broker_id: int, controller_epoch: int) -> list[Operation]:
    """What starts a new leader epoch for all that a broker leads.

    A broker that died may have lost the end of a log that a client has seen. In a new epoch, the client finds that out.
    """
    return [
        _state_operation(topic, partition._replace(leader_epoch=partition.leader_epoch + 1), controller_epoch)
        for topic, index in _all_partitions(cluster)
        if (partition := cluster.topics[topic].partitions[index]).leader_id == broker_id
    ]


def _all_partitions(cluster: ClusterView) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in cluster.topics.values() for index in range(len(topic.partitions))]


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

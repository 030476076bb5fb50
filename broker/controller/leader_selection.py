"""Which replica becomes a partition's leader. Pure: a partition and who is alive come in, the new state goes out.

Each function returns the partition in its new leader epoch, or None if nobody can lead. The order of preference is
always that of the assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from barnabas.broker.controller.images import NO_LEADER, PartitionImage


def without_dead_replicas(
    partition: PartitionImage, live: Collection[int], *, unclean: bool, shutting_down: Collection[int] = ()
) -> PartitionImage | None:
    """A partition whose leader or in-sync replicas may have died. None if it can stay as it is.

    Dead replicas leave the ISR, except the last ones: the first of them that comes back may lead again. Without a live
    member of the ISR the partition has no leader, unless an unclean election is allowed, which may lose records.
    """
    leader_lives = partition.leader_id in live
    live_isr = tuple(broker_id for broker_id in partition.isr_nodes if broker_id in live)
    if leader_lives and len(live_isr) == len(partition.isr_nodes):
        return None
    isr = live_isr or partition.isr_nodes
    leader_id = partition.leader_id if leader_lives else _first(partition.replica_nodes, live, live_isr, shutting_down)
    if leader_id == NO_LEADER and unclean:
        leader_id = _first(partition.replica_nodes, live, partition.replica_nodes, ())
        if leader_id != NO_LEADER:
            isr = (leader_id,)
    if leader_id == partition.leader_id == NO_LEADER and isr == partition.isr_nodes:
        return None
    return _elected(partition, leader_id, isr)


def preferred(partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
    """The first replica, if it is alive and in sync."""
    leader_id = partition.replica_nodes[0]
    if leader_id not in live or leader_id not in partition.isr_nodes:
        return None
    return _elected(partition, leader_id, partition.isr_nodes)


def for_reassignment(partition: PartitionImage, target: Sequence[int], live: Collection[int]) -> PartitionImage | None:
    """A leader among the replicas that the partition is moving to."""
    leader_id = _first(target, live, partition.isr_nodes, ())
    return None if leader_id == NO_LEADER else _elected(partition, leader_id, partition.isr_nodes)


def for_shutdown(
    partition: PartitionImage, broker_id: int, live: Collection[int], shutting_down: Collection[int]
) -> PartitionImage | None:
    """Another leader, or the same without this follower in the ISR, before a broker stops.

    None if nobody can take over, or if nothing has to change. The last replica in sync stays in the ISR: if its broker
    is already gone, it may lead again when that comes back.
    """
    isr = tuple(each for each in partition.isr_nodes if each != broker_id and each not in shutting_down)
    if partition.leader_id != broker_id:
        if broker_id not in partition.isr_nodes or not isr:
            return None
        return _elected(partition, partition.leader_id, tuple(r for r in partition.isr_nodes if r != broker_id))
    leader_id = _first(partition.replica_nodes, live, isr, shutting_down)
    return None if leader_id == NO_LEADER else _elected(partition, leader_id, isr)


def without_failed_replicas(
    partition: PartitionImage, failed: Collection[int], live: Collection[int], shutting_down: Collection[int]
) -> PartitionImage | None:
    """The partition without replicas whose disks fail: others lead, and nobody waits for them.

    None if nobody else is in sync, or if nothing has to change. Then a leader that cannot write is better than none.
    """
    isr = tuple(replica for replica in partition.isr_nodes if replica not in failed)
    if partition.leader_id not in live or not isr or isr == partition.isr_nodes:
        return None
    leader_id = partition.leader_id
    if leader_id in failed:
        leader_id = _first(partition.replica_nodes, live, isr, shutting_down)
    return None if leader_id == NO_LEADER else _elected(partition, leader_id, isr)


def _first(replicas: Sequence[int], live: Collection[int], eligible: Collection[int], excluded: Collection[int]) -> int:
    candidates = (r for r in replicas if r in live and r in eligible and r not in excluded)
    return next(candidates, NO_LEADER)


def _elected(partition: PartitionImage, leader_id: int, isr: tuple[int, ...]) -> PartitionImage:
    return partition._replace(leader_id=leader_id, leader_epoch=partition.leader_epoch + 1, isr_nodes=isr)

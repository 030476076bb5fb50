"""AlterPartition, decided: may a leader have the in-sync replicas that it asks for?

The leader epoch stays; the version of the partition's state node rises, and is the new partition epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.results import Decision
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.tree_operations import Operation, Set
from barnabas.protocol.errors import ErrorCode


class WantedIsr(NamedTuple):
    """What a leader asks for. Members of the ISR come with their broker epochs, or -1 where those are not known."""

    topic_id: bytes
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]


class IsrResult(NamedTuple):
    topic_id: bytes
    partition_index: int
    error_code: ErrorCode
    partition: PartitionImage | None = None  # as it is now, where there is no error


def alter_partitions(
    cluster: ClusterView, wanted: Sequence[WantedIsr], broker_epochs: Mapping[int, int], shutting_down: frozenset[int]
) -> Decision[IsrResult]:
    """`broker_epochs` are those of the brokers that are alive."""
    results: list[IsrResult] = []
    operations: list[Operation] = []
    for each in wanted:
        topic = cluster.topic_by_id(each.topic_id)
        if topic is None:
            results.append(_refused(each, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        partition = cluster.partition(topic.name, each.partition_index)
        if partition is None:
            results.append(_refused(each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        isr = tuple(broker_id for broker_id, _ in each.isr)
        error = _objection(each, isr, partition, broker_epochs, shutting_down)
        if error:
            results.append(_refused(each, error))
        elif isr == partition.isr_nodes:
            results.append(IsrResult(each.topic_id, each.partition_index, ErrorCode.NONE, partition))
        else:
            changed = partition._replace(isr_nodes=isr, partition_epoch=partition.partition_epoch + 1)
            state = znodes.write_state(changed, cluster.controller_epoch)
            operations.append(
                Set(znodes.state_path(topic.name, each.partition_index), state, partition.partition_epoch)
            )
            results.append(IsrResult(each.topic_id, each.partition_index, ErrorCode.NONE, changed))
    return Decision(results, operations)


def _objection(
    wanted: WantedIsr,
    isr: tuple[int, ...],
    partition: PartitionImage,
    broker_epochs: Mapping[int, int],
    shutting_down: frozenset[int],
) -> ErrorCode:
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        # The leader has orders from a newer controller than this one.
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if isr == partition.isr_nodes:
        return ErrorCode.NONE  # an answer was lost, and it asks again
    if wanted.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if partition.leader_id not in isr or any(member not in partition.replica_nodes for member in isr):
        return ErrorCode.INVALID_REQUEST
    for member, epoch in wanted.isr:
        if member in partition.isr_nodes:
            continue
        if member not in broker_epochs or member in shutting_down or epoch not in (-1, broker_epochs[member]):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _refused(wanted: WantedIsr, error: ErrorCode) -> IsrResult:
    return IsrResult(wanted.topic_id, wanted.partition_index, error)

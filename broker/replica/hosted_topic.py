"""A topic's partitions on this broker, and what was last ordered for each."""

from __future__ import annotations

from barnabas.broker.replica.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState


class HostedTopic:
    __slots__ = ("name", "partitions", "states", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[Partition | None] = []  # by index; None: another broker has it, or it is being created
        self.states: dict[int, LeaderAndIsrPartitionState] = {}  # what was last ordered for each

    def find(self, index: int) -> Partition | None:
        return self.partitions[index] if index < len(self.partitions) else None

    def put(self, partition: Partition) -> None:
        missing = partition.index + 1 - len(self.partitions)
        self.partitions.extend([None] * missing)
        self.partitions[partition.index] = partition

    def take_out(self, index: int) -> Partition | None:
        """Forget a partition, and what was ordered for it."""
        self.states.pop(index, None)
        partition = self.find(index)
        if partition is not None:
            self.partitions[index] = None
        return partition

    def objection(self, state: LeaderAndIsrPartitionState, broker_id: int) -> ErrorCode:
        """Why an order is not carried out: it is old, or not for this broker."""
        if state.partition_index < 0:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        last = self.states.get(state.partition_index)
        if last is not None:
            if state.leader_epoch < last.leader_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
            if state.leader_epoch == last.leader_epoch and state.partition_epoch < last.partition_epoch:
                return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_undone(self, state: LeaderAndIsrPartitionState) -> bool:
        """Whether an order has yet to be carried out."""
        partition = self.find(state.partition_index)
        return partition is None or partition.leader_epoch != state.leader_epoch

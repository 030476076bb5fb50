"""ListPartitionReassignments (key 46): the partitions that are on the move. Partitions that do not exist are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.controller.reassignments import list_partition_reassignments
from broker.server.request import Request
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    asked = None
    if message.topics is not None:
        asked = [(topic.name, index) for topic in message.topics for index in topic.partition_indexes]
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, partition in list_partition_reassignments(broker.cluster, asked):
        topics.setdefault(name, []).append(
            OngoingPartitionReassignment(
                partition_index=partition.partition_index,
                replicas=list(partition.replica_nodes),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
        )
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in topics.items()]
    )

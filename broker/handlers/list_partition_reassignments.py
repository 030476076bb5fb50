"""ListPartitionReassignments (key 46): the partitions that are being reassigned. Unknown partitions are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.results import NOT_CONTROLLER
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def handle(
    broker: Broker, request: Request, message: ListPartitionReassignmentsRequest
) -> Steps[ListPartitionReassignmentsResponse]:
    term = broker.controller.term
    if term is None:  # the others are not told which partitions move
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER, topics=[]
        )
    cluster = term.cluster
    asked: Iterable[tuple[str, Iterable[int]]]
    if message.topics is None:
        asked = [(image.name, range(len(image.partitions))) for image in cluster.topics.values()]
    else:
        asked = ((topic.name, topic.partition_indexes) for topic in message.topics)
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, indexes in asked:
        for index in indexes:
            partition = cluster.partition(name, index)
            if partition is not None and partition.is_reassigning:
                topics.setdefault(name, []).append(_answer(partition))
            yield
        yield
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _answer(partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.partition_index,
        replicas=list(partition.replica_nodes),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )

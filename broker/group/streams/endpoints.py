"""Which instance of an application has which partitions: clients that query its state ask the right one (KIP-535)."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.group.streams.configuration import ConfiguredTopology, Count
from barnabas.broker.group.streams.member import StreamsMember
from barnabas.broker.group.streams.tasks import TaskEpochs, TaskIds
from barnabas.protocol.messages.streams_group_heartbeat import EndpointToPartitions, ResponseEndpoint, TopicPartition


def endpoints(
    members: Iterable[StreamsMember], topology: ConfiguredTopology, count: Count
) -> list[EndpointToPartitions]:
    """For each member that has an endpoint: the partitions that its tasks read."""
    return [
        EndpointToPartitions(
            user_endpoint=ResponseEndpoint(host=member.endpoint.host, port=member.endpoint.port),
            active_partitions=_partitions(member.assigned.active, topology, count),
            standby_partitions=_partitions(member.assigned.standby, topology, count),
        )
        for member in members
        if member.endpoint is not None
    ]


def _partitions(tasks: TaskIds | TaskEpochs, topology: ConfiguredTopology, count: Count) -> list[TopicPartition]:
    subtopologies = topology.subtopologies or {}
    found: list[TopicPartition] = []
    for id in sorted(tasks):
        if id in subtopologies:
            read = subtopologies[id].source_topics.union(subtopologies[id].repartition_source_topics)
            for topic in sorted(read):
                partitions = count(topic)
                if partitions is not None:  # it may have been deleted
                    found.append(TopicPartition(topic=topic, partitions=sorted(tasks[id])[:partitions]))
    return found

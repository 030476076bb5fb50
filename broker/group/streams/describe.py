"""A streams group as StreamsGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.group.assignors.sticky_tasks import java_order
from barnabas.broker.group.streams.configuration import ConfiguredTopology, InternalTopic
from barnabas.broker.group.streams.group import StreamsGroup
from barnabas.broker.group.streams.member import StreamsMember
from barnabas.broker.group.streams.tasks import TaskEpochs, TaskIds, Tasks
from barnabas.broker.group.streams.topology import Topology
from barnabas.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TopicInfo,
)
from barnabas.protocol.messages.streams_group_describe import (
    TaskIds as DescribedTaskIds,
)
from barnabas.protocol.messages.streams_group_describe import (
    Topology as DescribedTopology,
)
from barnabas.protocol.streams_group_records import TopicInfo as RecordedTopic


def described(group: StreamsGroup) -> DescribedGroup:
    configured = group.configured
    topology = None if group.topology is None else _topology(group.topology)
    if configured is not None and configured.is_ready:
        topology = _configured(configured)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=topology,
        members=[_member(member, group.target_of(member.member_id)) for member in group.members.values()],
    )


def _member(member: StreamsMember, target: Tasks) -> Member:
    endpoint = member.endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(member.assigned.active, member.assigned.standby, member.assigned.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
        is_classic=False,
    )


def _assignment(active: TaskIds | TaskEpochs, standby: TaskIds, warmup: TaskIds) -> Assignment:
    return Assignment(active_tasks=_tasks(active), standby_tasks=_tasks(standby), warmup_tasks=_tasks(warmup))


def _tasks(tasks: TaskIds | TaskEpochs) -> list[DescribedTaskIds]:
    return [DescribedTaskIds(subtopology_id=id, partitions=sorted(tasks[id])) for id in sorted(tasks, key=java_order)]


def _configured(topology: ConfiguredTopology) -> DescribedTopology:
    """With the numbers of partitions that were found out."""
    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=id,
                source_topics=sorted(each.source_topics, key=java_order),
                repartition_sink_topics=sorted(each.repartition_sink_topics, key=java_order),
                state_changelog_topics=_topics(each.state_changelog_topics.values()),
                repartition_source_topics=_topics(each.repartition_source_topics.values()),
            )
            for id, each in (topology.subtopologies or {}).items()
        ],
    )


def _topology(topology: Topology) -> DescribedTopology:
    """As the members described it."""
    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=id,
                source_topics=sorted(each.source_topics, key=java_order),
                repartition_sink_topics=sorted(each.repartition_sink_topics, key=java_order),
                state_changelog_topics=_topics(map(_internal, each.state_changelog_topics)),
                repartition_source_topics=_topics(map(_internal, each.repartition_source_topics)),
            )
            for id, each in sorted(topology.subtopologies.items(), key=lambda item: java_order(item[0]))
        ],
    )


def _internal(info: RecordedTopic) -> InternalTopic:
    configs = {each.key: each.value for each in info.topic_configs}
    return InternalTopic(info.name, info.partitions, info.replication_factor, configs)


def _topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in each.configs.items()],
        )
        for each in sorted(topics, key=lambda topic: java_order(topic.name))
    ]

"""Requests of streams groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)

# Tasks by subtopology.
Tasks = Mapping[str, Sequence[int]]


def topic_info(
    name: str, partitions: int = 0, replication_factor: int = 0, configs: Sequence[tuple[str, str]] = ()
) -> TopicInfo:
    """A topic of the application itself. 0 leaves it to the broker."""
    return TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[KeyValue(key=key, value=value) for key, value in configs],
    )


def subtopology(
    id: str,
    *sources: str,
    regexes: Sequence[str] = (),
    sinks: Sequence[str] = (),
    repartition: Sequence[TopicInfo | str] = (),
    changelogs: Sequence[TopicInfo | str] = (),
    copartitioned: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> Subtopology:
    """`sources` are topics of others; `copartitioned` groups have indexes of sources and of repartition topics."""
    return Subtopology(
        subtopology_id=id,
        source_topics=list(sources),
        source_topic_regex=list(regexes),
        state_changelog_topics=[topic_info(each) if isinstance(each, str) else each for each in changelogs],
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[topic_info(each) if isinstance(each, str) else each for each in repartition],
        copartition_groups=[
            CopartitionGroup(source_topics=list(own), source_topic_regex=[], repartition_source_topics=list(others))
            for own, others in copartitioned
        ],
    )


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(subtopologies))


def streams_group_heartbeat(
    group: str,
    member: str,
    epoch: int,
    *,
    topology: Topology | None = None,
    active: Tasks | None = None,
    standby: Tasks | None = None,
    warmup: Tasks | None = None,
    tags: Sequence[tuple[str, str]] | None = None,
    **fields: Any,
) -> StreamsGroupHeartbeatRequest:
    """A member that joins (epoch 0) says that it has no tasks yet. Whoever tells its active tasks tells all."""
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "process_id": f"process of {member}", **fields}
        active = active or {}
    if active is not None:
        standby, warmup = standby or {}, warmup or {}
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        **{
            "endpoint_information_epoch": 0,
            "topology": topology,
            "active_tasks": _tasks(active),
            "standby_tasks": _tasks(standby),
            "warmup_tasks": _tasks(warmup),
            "client_tags": None if tags is None else [KeyValue(key=key, value=value) for key, value in tags],
            **fields,
        },
    )


def streams_group_describe(*groups: str, operations: bool = False) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


def _tasks(tasks: Tasks | None) -> list[RequestTaskIds] | None:
    if tasks is None:
        return None
    return [RequestTaskIds(subtopology_id=id, partitions=list(partitions)) for id, partitions in tasks.items()]

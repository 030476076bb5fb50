"""The topology of a streams application: its subtopologies, what they read and write, and which topics they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from barnabas.broker.group.assignors.hash_order import in_hash_order, string_hash
from barnabas.broker.group.refused import Refused
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_group_heartbeat as requests
from barnabas.protocol.streams_group_records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)


@dataclass(frozen=True, slots=True)
class Topology:
    """As the first member of the group described it. Members with another one of the same epoch are refused."""

    value: StreamsGroupTopologyValue  # as it was given
    subtopologies: Mapping[str, Subtopology]  # in the order in which Kafka looks at them, by their ids' hashes
    required_topics: tuple[str, ...]
    """Topics that it reads, and topics of its own; the order is Kafka's, too."""

    readers: Mapping[str, str]
    """By topic: the subtopology that reads it."""

    @property
    def epoch(self) -> int:
        return self.value.epoch

    def is_same(self, other: Topology) -> bool:
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def topology_of(value: StreamsGroupTopologyValue) -> Topology:
    found: dict[str, Subtopology] = {}
    for each in value.subtopologies:
        if each.subtopology_id in found:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topology has two subtopologies {each.subtopology_id}.")
        found[each.subtopology_id] = each
    if value.epoch < 0:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topology's epoch is {value.epoch}.")
    ordered = {id: found[id] for id in in_hash_order(found, string_hash)}
    required: dict[str, None] = {}
    readers: dict[str, str] = {}
    for id, each in ordered.items():
        for topic in (*each.source_topics, *(info.name for info in each.repartition_source_topics)):
            required[topic] = None
            readers[topic] = id
        required.update(dict.fromkeys(info.name for info in each.state_changelog_topics))
    return Topology(value, ordered, tuple(in_hash_order(required, string_hash)), readers)


def topology_in(request: requests.Topology) -> Topology:
    subtopologies = list(map(_subtopology, request.subtopologies))
    return topology_of(StreamsGroupTopologyValue(epoch=request.epoch, subtopologies=subtopologies))


def _subtopology(asked: requests.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=asked.subtopology_id,
        source_topics=asked.source_topics,
        source_topic_regex=asked.source_topic_regex,
        state_changelog_topics=list(map(_topic, asked.state_changelog_topics)),
        repartition_sink_topics=asked.repartition_sink_topics,
        repartition_source_topics=list(map(_topic, asked.repartition_source_topics)),
        copartition_groups=[
            CopartitionGroup(
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                repartition_source_topics=each.repartition_source_topics,
            )
            for each in asked.copartition_groups
        ],
    )


def _topic(asked: requests.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=asked.name,
        partitions=asked.partitions,
        replication_factor=asked.replication_factor,
        topic_configs=[TopicConfig(key=each.key, value=each.value) for each in asked.topic_configs],
    )


def topics_named_by(asked: requests.Subtopology) -> Iterator[tuple[str, int]]:
    """Every topic that a subtopology mentions, and how many bytes a record needs for that at least."""
    for name in (*asked.source_topics, *asked.repartition_sink_topics):
        yield name, len(name) + 1
    for topic in (*asked.repartition_source_topics, *asked.state_changelog_topics):
        yield topic.name, len(topic.name) + 1 + sum(len(each.key) + len(each.value) for each in topic.topic_configs)

"""A topology configured for the topics that there are: how many tasks it has, and which topics of its own are missing.

Repartition topics without a number of partitions get that of the subtopology that writes them, unless they are read
together with others: then, what those have. Changelog topics have a partition for each task. Everything is looked at in
Kafka's order, since some of the numbers depend on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.group.assignors.hash_order import in_hash_order, string_hash
from barnabas.broker.group.assignors.sticky_tasks import java_order
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.statuses import Problem, StatusCode
from barnabas.broker.group.streams.topology import Topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.streams_group_records import Subtopology, TopicInfo

# The number of partitions of a topic; None if it does not exist.
Count = Callable[[str], int | None]

_MOST_NAMED: Final = 3


class _NotReady(Exception):
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(code, detail)


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: int
    replication_factor: int  # 0 leaves it to the broker
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    tasks: int
    source_topics: frozenset[str]
    repartition_sink_topics: frozenset[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None  # by id, sorted; None if the topics do not allow it
    missing: Sequence[InternalTopic] = field(default=())
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        """Tasks can be assigned."""
        return self.problem is None


def configure(topology: Topology, count: Count) -> ConfiguredTopology:
    """Raises Refused for a topology that contradicts itself."""
    copartitioned = [group for each in topology.subtopologies.values() for group in _copartition_groups(each)]
    try:
        _check_source_topics(topology, count)
        decided = _Counts(count)
        _count_repartition_topics(topology, decided)
        _enforce_copartitioning(topology, copartitioned, decided)
        _count_changelog_topics(topology, decided)
        subtopologies = {
            id: _configured(topology.subtopologies[id], decided)
            for id in sorted(topology.subtopologies, key=java_order)
        }
        missing = _missing_topics(subtopologies, topology, count)
    except _NotReady as not_ready:
        return ConfiguredTopology(topology.epoch, None, problem=not_ready.problem)
    if not missing:
        return ConfiguredTopology(topology.epoch, subtopologies)
    detail = f"Internal topics are missing: {_summary([each.name for each in missing])}"
    problem = Problem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


class _Counts:
    """How many partitions topics have, or will have."""

    def __init__(self, existing: Count) -> None:
        self._existing = existing
        self.decided: dict[str, int] = {}

    def of(self, topic: str) -> int:
        found = self._existing(topic)
        return self.decided[topic] if found is None else found

    def known(self, topic: str) -> int | None:
        found = self._existing(topic)
        return self.decided.get(topic) if found is None else found


def _read_by(subtopology: Subtopology) -> Iterable[str]:
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def _copartition_groups(subtopology: Subtopology) -> Iterable[list[str]]:
    """The groups of topics of a subtopology that must have the same number of partitions."""
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    for group in subtopology.copartition_groups:
        named = [(subtopology.source_topics, index) for index in group.source_topics]
        named += [(repartition, index) for index in group.repartition_source_topics]
        if not all(0 <= index < len(topics) for topics, index in named):
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A copartition group names topics that are not there.")
        yield list(dict.fromkeys(topics[index] for topics, index in named))


def _check_source_topics(topology: Topology, count: Count) -> None:
    read = dict.fromkeys(topic for each in topology.subtopologies.values() for topic in each.source_topics)
    missing = sorted((topic for topic in read if count(topic) is None), key=java_order)
    if missing:
        raise _NotReady(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


def _count_repartition_topics(topology: Topology, counts: _Counts) -> None:
    """Go over the subtopologies again and again, as Kafka does, but only over those that something is new for.

    A subtopology's repartition sinks get the most partitions that are known of its sources when it is looked at.
    """
    subtopologies = list(topology.subtopologies.values())
    decided = counts.decided
    for each in subtopologies:
        for topic in each.repartition_source_topics:
            if topic.partitions != 0:
                decided[topic.name] = topic.partitions
    readers: dict[str, list[int]] = {}
    for place, each in enumerate(subtopologies):
        for topic in each.repartition_source_topics:
            readers.setdefault(topic.name, []).append(place)
    waiting = [(0, place) for place, each in enumerate(subtopologies) if _most(each, counts) is not None]
    queued = {place for _, place in waiting}
    while waiting:
        turn, place = heapq.heappop(waiting)
        each = subtopologies[place]
        most = _most(each, counts)
        for sink in each.repartition_sink_topics:
            if sink in decided or most is None:
                continue
            decided[sink] = most
            for reader in readers.get(sink, ()):
                if reader not in queued:
                    queued.add(reader)
                    heapq.heappush(waiting, (turn if reader > place else turn + 1, reader))
    if any(sink not in decided for each in subtopologies for sink in each.repartition_sink_topics):
        raise _invalid("The partitions of some repartition topics cannot be counted: the topology has a loop.")
    if any(topic.name not in decided for each in subtopologies for topic in each.repartition_source_topics):
        raise _invalid("A repartition topic that is read is never written to.")


def _most(subtopology: Subtopology, counts: _Counts) -> int | None:
    """The most partitions that are known of its sources. Of repartition topics, only what was decided counts."""
    found = [counts.decided.get(topic.name) for topic in subtopology.repartition_source_topics]
    found += [counts.known(topic) for topic in subtopology.source_topics]
    return max((each for each in found if each is not None), default=None)


def _enforce_copartitioning(topology: Topology, groups: Sequence[Sequence[str]], counts: _Counts) -> None:
    infos = [info for each in topology.subtopologies.values() for info in each.repartition_source_topics]
    fixed = dict.fromkeys(info.name for info in infos if info.partitions != 0)
    repartition = {info.name for info in infos}
    fixed_counts = sorted(set(map(counts.of, fixed)))
    for group in filter(None, groups):
        own = {name: counts.of(name) for name in group if name in repartition}
        others = {name: counts.of(name) for name in group if name not in own}
        if others:
            partitions = _same(others, sorted(set(others.values())))
        elif fixed:
            partitions = _same(own, fixed_counts)
        else:
            partitions = max(own.values(), default=0)
        for name in in_hash_order(own, string_hash):
            counts.decided[name] = partitions
            if name in fixed and own[name] != partitions:
                raise _NotReady(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{own[name]}] of repartition topic [{name}] doesn't match number of "
                    f"partitions [{partitions}] of the source topic.",
                )


def _same(topics: Mapping[str, int], counts: Sequence[int]) -> int:
    if len(counts) == 1:
        return counts[0]
    listed = ", ".join(f"{name}={topics[name]}" for name in sorted(topics, key=java_order))
    raise _NotReady(
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{listed}}}]",
    )


def _count_changelog_topics(topology: Topology, counts: _Counts) -> None:
    for id, each in topology.subtopologies.items():
        most = max(map(counts.of, _read_by(each)), default=None)
        if most is None:
            raise _invalid(f"No source topics found for subtopology {id}")
        for topic in each.state_changelog_topics:
            counts.decided[topic.name] = most


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(map(counts.of, _read_by(subtopology))),
        frozenset(subtopology.source_topics),
        frozenset(subtopology.repartition_sink_topics),
        _internal(subtopology.repartition_source_topics, counts),
        _internal(subtopology.state_changelog_topics, counts),
    )


def _internal(infos: Iterable[TopicInfo], counts: _Counts) -> dict[str, InternalTopic]:
    topics: dict[str, InternalTopic] = {}
    for info in infos:
        partitions = info.partitions or counts.decided[info.name]
        configs = {each.key: each.value for each in info.topic_configs}
        if partitions < 1 or info.name in topics or len(configs) != len(info.topic_configs):
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topology contradicts itself about topic {info.name}.")
        topics[info.name] = InternalTopic(info.name, partitions, info.replication_factor, configs)
    return topics


def _missing_topics(
    subtopologies: Mapping[str, ConfiguredSubtopology], topology: Topology, count: Count
) -> list[InternalTopic]:
    wanted = {
        topic.name: topic
        for each in subtopologies.values()
        for topics in (each.repartition_source_topics, each.state_changelog_topics)
        for topic in topics.values()
    }
    for name in topology.required_topics:
        expected, found = wanted.get(name), count(name)
        if expected is not None and found is not None and found != expected.partitions:
            raise _NotReady(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, "
                f"found {found}",
            )
    return [wanted[name] for name in in_hash_order(wanted, string_hash) if count(name) is None]


def _summary(topics: Sequence[str]) -> str:
    named = ", ".join(topics[:_MOST_NAMED])
    more = len(topics) - _MOST_NAMED
    return f"{named} and {more} additional topics" if more > 0 else named


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)

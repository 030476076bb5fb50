"""The broker as a pipeline sees it without Spark: its topics, their end offsets, a group's offsets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from barnabas.pipeline.bounded import NoAnswerError, bounded
from barnabas.pipeline.checks import did_you_mean
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.kafka_settings import for_librdkafka
from barnabas.pipeline.model import BadRecordsAction, Pipeline, Source, TopicSink

Offsets = dict[str, dict[int, int]]

_EARLIEST: Final = -2  # as Spark's connector writes it

_PASSING: Final = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",
    "_WAIT_COORD",
    "_TRANSPORT",
)


class Cluster:
    """Every question has a time limit, and no answer becomes a readable error."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None, timeout: float = 10.0) -> None:
        self.bootstrap = bootstrap
        self._timeout = timeout
        self._config = for_librdkafka(bootstrap, settings or {})
        try:
            self._admin = AdminClient(self._config)
        except KafkaException as error:
            raise PipelineError(
                f"the settings under `kafka` and `security` are refused: {error.args[0].str()}"
            ) from None
        self.cluster_id = ""

    def topics(self) -> dict[str, int]:
        """Every topic with its number of partitions."""
        try:
            metadata = bounded(lambda seconds: self._admin.list_topics(timeout=seconds), self._timeout, "metadata")
        except (KafkaException, NoAnswerError):
            raise PipelineError(
                f"no broker answered at {self.bootstrap} within {self._timeout:g} s; start one (`barnabas serve`), or "
                "correct `bootstrap` in the file (or use -b HOST:PORT)"
            ) from None
        self.cluster_id = metadata.cluster_id or ""
        return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}

    def create(self, topic: str, partitions: int) -> None:
        future = self._admin.create_topics([NewTopic(topic, partitions, -1)], request_timeout=self._timeout)[topic]
        try:
            future.result(self._timeout + 5)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise PipelineError(f"the topic {topic!r} could not be created: {error.args[0].str()}") from None

    def ends(self, partitions: Mapping[str, int]) -> Offsets:
        """The log end offset of every partition of these topics (topic -> number of partitions)."""
        asked = {
            TopicPartition(topic, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for topic, count in partitions.items()
            for number in range(count)
        }
        found: Offsets = {topic: {} for topic in partitions}
        for partition, future in (
            self._admin.list_offsets(asked, request_timeout=self._timeout) if asked else {}
        ).items():
            found[partition.topic][partition.partition] = future.result(self._timeout + 5).offset
        return found

    def committed(self, group: str) -> Offsets:
        """The offsets of a group, which for an exactly-once query are its markers."""
        asked = [ConsumerGroupTopicPartitions(group)]
        future = self._admin.list_consumer_group_offsets(asked, request_timeout=self._timeout)[group]
        found: Offsets = {}
        try:
            answer = future.result(self._timeout + 5)
        except KafkaException:
            return found
        for each in answer.topic_partitions or ():
            if each.offset >= 0:
                found.setdefault(each.topic, {})[each.partition] = each.offset
        return found


def committed_offset(consumer: Consumer, topic: str, partition: int, seconds: float) -> int | None:
    """One committed offset, read at read_committed: waits for open transactions to be decided."""
    asked = [TopicPartition(topic, partition)]
    deadline = time.monotonic() + seconds
    while True:
        left = max(1.0, deadline - time.monotonic())
        try:
            answer = bounded(lambda limit: consumer.committed(asked, timeout=limit), left, "committed offset")[0]
            if answer.error is not None:
                raise KafkaException(answer.error)
            return answer.offset if answer.offset >= 0 else None
        except KafkaException as error:
            # A coordinator that is just being found or created is not a failure.
            if error.args[0].name() not in _PASSING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def topics_of(source: Source, known: Iterable[str]) -> list[str]:
    if source.pattern is not None:
        pattern = re.compile(source.pattern)
        return sorted(name for name in known if pattern.fullmatch(name))
    return list(source.topics)


def with_every_partition(pipeline: Pipeline, topics: Mapping[str, int]) -> Pipeline:
    """The same with a start offset for every partition, which Spark requires: the earliest where none is given.

    `topics` maps the topics that the pipeline uses to their numbers of partitions.
    """
    sources = [_with_every_partition(source, topics) for source in pipeline.sources]
    return replace(pipeline, sources=tuple(sources))


def _with_every_partition(source: Source, topics: Mapping[str, int]) -> Source:
    if not source.starting.startswith("{"):
        return source
    given: dict[str, dict[str, int]] = json.loads(source.starting)
    read = topics_of(source, topics)
    for topic, offsets in given.items():
        place = f"sources.{source.name}.from"
        if topic not in read:
            raise PipelineError(f"{place}: {topic!r} is not a topic of this source{did_you_mean(topic, read)}")
        for number in offsets:
            if int(number) >= topics[topic]:
                raise PipelineError(f"{place}: the topic {topic!r} has no partition {number}; it has {topics[topic]}")
    every = {
        topic: {str(number): given.get(topic, {}).get(str(number), _EARLIEST) for number in range(topics[topic])}
        for topic in read
    }
    return replace(source, starting=json.dumps(every))


def _hint(topic: str, known: Iterable[str]) -> str:
    return did_you_mean(topic, known) or "."


def check_topics(pipeline: Pipeline, cluster: Cluster, *, create: bool = True) -> dict[str, int]:
    """The topics that the pipeline reads and writes, which all exist; sinks' topics are created if the file says how.

    Without `create`, topics that would be created are included.
    """
    known = cluster.topics()
    missing = []
    for source in pipeline.sources:
        named = topics_of(source, known)
        if source.pattern is not None and not named:
            missing.append(f"no topic matches the pattern {source.pattern!r} of the source {source.name!r}")
        for topic in named:
            if topic not in known:
                missing.append(
                    f"the topic {topic!r} of the source {source.name!r} does not exist{_hint(topic, known)} "
                    f"Create it with: barnabas topics create {topic} --bootstrap {pipeline.bootstrap}"
                )
    wanted = [
        (sink.topic, sink.partitions, f"sinks.{sink.name}") for sink in pipeline.sinks if isinstance(sink, TopicSink)
    ]
    if pipeline.bad_records.action is BadRecordsAction.DEAD_LETTER and pipeline.bad_records.topic:
        wanted.append((pipeline.bad_records.topic, pipeline.bad_records.partitions, "bad_records"))
    for topic, partitions, place in wanted:
        if topic not in known and partitions is None:
            missing.append(
                f"the topic {topic!r} of {place} does not exist{_hint(topic, known)} Create it, or let "
                f"the pipeline do that: `partitions: 3` beside it in the file"
            )
    if missing:
        raise PipelineError("\n".join(missing))
    for topic, partitions, _ in wanted:
        if topic not in known and partitions is not None:
            if create:
                cluster.create(topic, partitions)
            known[topic] = partitions
    used = {topic for source in pipeline.sources for topic in topics_of(source, known)}
    used |= {topic for topic, _, _ in wanted}
    return {topic: known[topic] for topic in sorted(used)}

"""Deleting topics. The tree forgets them at once; who keeps their logs hears of it and deletes those."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from broker.controller import znodes
from broker.controller.decisions import Decision, Refused, TopicResult
from broker.controller.images import TopicImage
from broker.controller.uuids import ZERO_UUID
from broker.controller.view import ClusterView
from broker.registry.operations import Delete, Operation
from protocol.errors import ErrorCode


class TopicReference(NamedTuple):
    """A topic by its name or by its id, but not by both."""

    name: str | None = None
    topic_id: bytes = ZERO_UUID


def delete_topics(
    cluster: ClusterView, references: Sequence[TopicReference], *, delete_topic_enable: bool
) -> Decision[TopicResult]:
    if not delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        return Decision([TopicResult(name, topic_id, code) for name, topic_id in references])
    results: list[TopicResult] = []
    operations: list[Operation] = []
    found: list[TopicImage] = []
    for reference, times in Counter(references).items():
        try:
            found.append(_find(cluster, reference, times))
        except Refused as refusal:
            # What names no topic at all is answered as often as it is there.
            answers = times if reference == TopicReference() else 1
            results += [TopicResult(*reference, refusal.error_code, refusal.message)] * answers
    for topic, times in Counter(found).items():
        if times > 1:
            message = "The topic is given both by its name and by its id"
            results.append(TopicResult(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message))
        else:
            results.append(TopicResult(topic.name, topic.topic_id))
            operations += _operations(topic)
    return Decision(results, operations)


def _find(cluster: ClusterView, reference: TopicReference, times: int) -> TopicImage:
    name, topic_id = reference
    if name is not None and topic_id != ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "A topic is given by its name or by its id, not by both")
    if name is None and topic_id == ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "A topic is given by its name or by its id, not by neither")
    if times > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, "The topic is given twice")
    topic = cluster.topic_by_id(topic_id) if name is None else cluster.topic(name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise Refused(code, "There is no such topic")
    return topic


def _operations(topic: TopicImage) -> list[Operation]:
    """Children before their parents."""
    operations: list[Operation] = []
    for partition in topic.partitions:
        operations.append(Delete(znodes.state_path(topic.name, partition.partition_index)))
        operations.append(Delete(znodes.partition_path(topic.name, partition.partition_index)))
    return [
        *operations,
        Delete(znodes.partitions_path(topic.name)),
        Delete(znodes.topic_path(topic.name)),
        Delete(znodes.topic_config_path(topic.name)),
    ]

"""Deleting topics. They leave the tree at once; brokers then delete their logs.

Until that is done, a note of the topic's id stays in the tree, with the brokers that may still have folders of it: a
crash in between leaves folders without a topic, and a broker that was down finds out when it comes back.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.controller import znodes
from barnabas.broker.controller.images import TopicImage
from barnabas.broker.controller.results import Decision, Refused, TopicResult
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.quotas.mutations import EXCEEDED, Admit, everything
from barnabas.broker.registry.tree_operations import Create, Delete, Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import ZERO_UUID


class TopicReference(NamedTuple):
    """A topic by its name or by its id, but not by both."""

    name: str | None = None
    topic_id: bytes = ZERO_UUID


def delete_topics(
    cluster: ClusterView,
    references: Sequence[TopicReference],
    *,
    delete_topic_enable: bool,
    admit: Admit = everything,
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
            # An entry that names no topic is answered as often as it occurs.
            answers = times if reference == TopicReference() else 1
            results += [TopicResult(*reference, refusal.error_code, refusal.message)] * answers
    for topic, times in Counter(found).items():
        if times > 1:
            message = "The topic is given both by its name and by its id"
            results.append(TopicResult(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message))
        elif not admit(topic.name, len(topic.partitions)):
            code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
            results.append(TopicResult(topic.name, topic.topic_id, code, EXCEEDED))
        else:
            results.append(TopicResult(topic.name, topic.topic_id))
            operations += _operations(cluster, topic)
    return Decision(results, operations)


def _find(cluster: ClusterView, reference: TopicReference, times: int) -> TopicImage:
    name, topic_id = reference
    if name is not None and topic_id != ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "A topic is given by its name or by its id, not by both")
    if name is None and topic_id == ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "A topic is given by its name or by its id, and this one has neither")
    if times > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, "The topic is given twice")
    topic = cluster.topic_by_id(topic_id) if name is None else cluster.topic(name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise Refused(code, "There is no such topic")
    return topic


def _operations(cluster: ClusterView, topic: TopicImage) -> list[Operation]:
    """Children before their parents. A note of the topic's id stays, which shows that its folders are of no use."""
    paths: list[str] = []
    for partition in topic.partitions:
        paths.append(znodes.state_path(topic.name, partition.partition_index))
        paths.append(znodes.partition_path(topic.name, partition.partition_index))
    paths += [znodes.partitions_path(topic.name), znodes.topic_path(topic.name), znodes.topic_config_path(topic.name)]
    # A topic may be incomplete if its creator died or does not write settings.
    operations: list[Operation] = [Delete(path) for path in paths if cluster.has(path)]
    brokers = {broker_id for partition in topic.partitions for broker_id in partition.replica_nodes}
    return [*operations, Create(znodes.deletion_path(topic.topic_id), znodes.write_deletion(brokers))]

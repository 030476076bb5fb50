"""Metadata, and the other requests that return the same information."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.connection import Address
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import UNKNOWN_ID, Probe
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.schema import ZERO_UUID

room = Room("metadata", "Brokers, topics and leaders")

NOT_ASKED: Final = -(2**31)


def _ask(probe: Probe, topics: list[MetadataRequestTopic] | None, **fields: Any) -> Any:
    return probe.ask(ApiKey.METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=False, **fields))


@room.check("brokers", "Protocol guide: Metadata API", "Metadata 1+")
def brokers(probe: Probe) -> None:
    """Every broker has a unique id and an address, and the controller, if given, is one of them."""
    answer = _ask(probe, [])
    ids = [each.node_id for each in answer.brokers]
    probe.require(len(ids) == len(set(ids)) > 0, "brokers with ids of their own", f"{ids}")
    for each in answer.brokers:
        probe.require(bool(each.host) and 0 < each.port < 65536, "a host and a port", f"{each.host}:{each.port}")
    controller = answer.controller_id
    probe.require(controller in (-1, *ids), "the controller to be one of the brokers", f"{controller} of {ids}")


@room.check("advertised-address", "KIP-103", "Metadata")
def advertised_address(probe: Probe) -> None:
    """Every advertised address can be reached from here, and a broker of the same cluster responds there."""
    answer = _ask(probe, [])
    for each in answer.brokers:
        wire = probe.connect(Address(each.host, each.port))
        there = wire.ask(
            ApiKey.METADATA,
            MetadataRequest(topics=[], allow_auto_topic_creation=False),
            probe.version(ApiKey.METADATA),
        )
        probe.expect("the cluster id that it gives", there.cluster_id, answer.cluster_id)


@room.check("cluster-id", "KIP-78", "Metadata 2+")
def cluster_id(probe: Probe) -> None:
    """The cluster has an id that stays the same from one response to the next."""
    first, second = _ask(probe, []).cluster_id, _ask(probe, []).cluster_id
    probe.require(bool(first), "a cluster id", repr(first))
    probe.expect("the cluster id the second time", second, first)


@room.check("no-topics", "Protocol guide: Metadata API", "Metadata 1+")
def no_topics(probe: Probe) -> None:
    """From version 1 on, an empty list requests no topics."""
    probe.topic()
    probe.expect("the number of topics", len(_ask(probe, []).topics), 0)


@room.check("all-topics", "Protocol guide: Metadata API", "Metadata 1+")
def all_topics(probe: Probe) -> None:
    """From version 1 on, a null list requests all topics, and each is listed once."""
    topic = probe.topic()
    names = [each.name for each in _ask(probe, None).topics]
    probe.require(
        topic in names, "the topic of this check to be among them", "it is" if topic in names else "it is not"
    )
    probe.expect("topics that are there twice", sorted({name for name in names if names.count(name) > 1}), [])


@room.check("partitions", "Protocol guide: Metadata API", "Metadata")
def partitions(probe: Probe) -> None:
    """Partitions are numbered from 0; leaders and in-sync replicas are among the replicas, and replicas are brokers."""
    topic = probe.topic(partitions=3)
    answer = probe.metadata(topic)
    (found,) = answer.topics
    indexes = sorted(each.partition_index for each in found.partitions)
    probe.expect("the partitions", indexes, [0, 1, 2])
    known = {each.node_id for each in answer.brokers}
    for each in found.partitions:
        replicas = set(each.replica_nodes)
        probe.require(each.leader_id in replicas, "the leader to be a replica", f"{each.leader_id} of {replicas}")
        probe.require(set(each.isr_nodes) <= replicas, "in-sync replicas to be replicas", f"{each.isr_nodes}")
        probe.require(replicas <= known, "replicas to be brokers", f"{replicas} of {known}")


@room.check("unknown-topic", "Protocol guide: Metadata API", "Metadata 4+")
def unknown_topic(probe: Probe) -> None:
    """A topic that does not exist gets UNKNOWN_TOPIC_OR_PARTITION and is not created unless the client allows it."""
    name = probe.name()
    for _ in range(2):
        (found,) = probe.metadata(name).topics
        probe.expect_error("Metadata", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        probe.expect("its partitions", len(found.partitions), 0)


@room.check("invalid-name", "Protocol guide: Metadata API", "Metadata 4+")
def invalid_name(probe: Probe) -> None:
    """An invalid topic name gets INVALID_TOPIC_EXCEPTION."""
    for name in ("not a name", "a/b", "x" * 250):
        (found,) = probe.metadata(name).topics
        probe.expect_error(f"a name of {len(name)} characters", found.error_code, ErrorCode.INVALID_TOPIC_EXCEPTION)


@room.check("known-beside-unknown", "Protocol guide: Metadata API", "Metadata 4+")
def known_beside_unknown(probe: Probe) -> None:
    """An error for one topic does not affect the others in the request."""
    topic, missing = probe.topic(), probe.name()
    found = {each.name: each.error_code for each in probe.metadata(missing, topic).topics}
    probe.expect("the topics in the response", sorted(found), sorted([topic, missing]))
    probe.expect_error("the topic that exists", found[topic])
    probe.expect_error("the one that does not", found[missing], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@room.check("by-id", "KIP-516", "Metadata 12+")
def by_id(probe: Probe) -> None:
    """A topic can be requested by id, and the response has its name."""
    topic = probe.topic()
    topic_id = probe.topics[topic].topic_id
    probe.require(topic_id != ZERO_UUID, "a topic id", topic_id.hex())
    (found,) = _ask(probe, [MetadataRequestTopic(name=None, topic_id=topic_id)]).topics
    probe.expect_error("Metadata by id", found.error_code)
    probe.expect("the name", found.name, topic)


@room.check("unknown-id", "KIP-516", "Metadata 12+")
def unknown_id(probe: Probe) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID."""
    (found,) = _ask(probe, [MetadataRequestTopic(name=None, topic_id=UNKNOWN_ID)]).topics
    probe.expect_error("Metadata by id", found.error_code, ErrorCode.UNKNOWN_TOPIC_ID)


@room.check("operations-on-request", "KIP-430", "Metadata 8+")
def operations_on_request(probe: Probe) -> None:
    """The response has authorized operations only if they are requested."""
    topic = probe.topic()
    asked = [MetadataRequestTopic(name=topic)]
    (without,) = _ask(probe, asked).topics
    probe.expect("operations that were not asked for", without.topic_authorized_operations, NOT_ASKED)
    (found,) = _ask(probe, asked, include_topic_authorized_operations=True).topics
    operations = found.topic_authorized_operations
    probe.require(operations > 0, "a set of operations", f"{operations}")


@room.check("describe-cluster", "KIP-700", "Metadata 2+", "DescribeCluster")
def describe_cluster(probe: Probe) -> None:
    """DescribeCluster names the same cluster and the same brokers as Metadata."""
    metadata = _ask(probe, [])
    answer = probe.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(include_cluster_authorized_operations=False))
    probe.expect_error("DescribeCluster", answer.error_code)
    probe.expect("the cluster id", answer.cluster_id, metadata.cluster_id)
    theirs = sorted((each.broker_id, each.host, each.port) for each in answer.brokers)
    probe.expect("the brokers", theirs, sorted((each.node_id, each.host, each.port) for each in metadata.brokers))


@room.check("describe-cluster-endpoint", "KIP-919", "DescribeCluster 1+")
def describe_cluster_endpoint(probe: Probe) -> None:
    """A request to a broker for controller endpoints gets MISMATCHED_ENDPOINT_TYPE; an unknown type is refused."""
    for endpoint_type, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
        answer = probe.ask(ApiKey.DESCRIBE_CLUSTER, request)
        probe.expect_error(f"endpoint type {endpoint_type}", answer.error_code, code)


def _page(probe: Probe, topics: list[str], limit: int, cursor: tuple[str, int] | None) -> Any:
    start = None if cursor is None else RequestCursor(topic_name=cursor[0], partition_index=cursor[1])
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics], response_partition_limit=limit, cursor=start
    )
    return probe.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)


@room.check("pages", "KIP-966", "DescribeTopicPartitions")
def pages(probe: Probe) -> None:
    """DescribeTopicPartitions returns pages up to the limit, and its cursor visits every partition once."""
    topics = sorted([probe.topic(partitions=3), probe.topic(partitions=2)])
    seen: list[tuple[str, int]] = []
    cursor = None
    while True:
        answer = _page(probe, topics, 2, cursor)
        page = [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
        probe.require(0 < len(page) <= 2, "a page of one or two partitions", f"{len(page)}")
        seen += page
        if answer.next_cursor is None:
            break
        cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
    sizes = {name: len(probe.topics[name].leaders) for name in topics}
    probe.expect("the partitions", seen, [(name, index) for name in topics for index in range(sizes[name])])


@room.check("pages-unknown-topic", "KIP-966", "DescribeTopicPartitions")
def pages_unknown_topic(probe: Probe) -> None:
    """DescribeTopicPartitions returns UNKNOWN_TOPIC_OR_PARTITION for a topic that does not exist."""
    (found,) = _page(probe, [probe.name()], 10, None).topics
    probe.expect_error("DescribeTopicPartitions", found.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

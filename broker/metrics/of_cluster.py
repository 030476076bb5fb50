"""What kafka_exporter reports about a cluster, under its names: topics and consumer groups, and how far behind they
are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import Families
from barnabas.broker.testing.fleet import leader_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.controller.images import PartitionImage, TopicImage
    from barnabas.broker.group.kind import AnyGroup
    from barnabas.broker.group.shard import GroupShard


def add_topics(found: Families, brokers: list[Broker], teller: Broker, with_partitions: bool) -> Iterator[None]:
    cluster = teller.cluster
    found.gauge("kafka_brokers", "Brokers in the cluster", len(cluster.brokers))
    for image in list(cluster.topics.values()):
        found.gauge("kafka_topic_partitions", "Partitions of a topic", len(image.partitions), topic=image.name)
        for told in image.partitions if with_partitions else ():
            _add_partition(found, brokers, image, told)
        yield


def _add_partition(found: Families, brokers: list[Broker], image: TopicImage, told: PartitionImage) -> None:
    labels = {"topic": image.name, "partition": told.partition_index}
    prefix = "kafka_topic_partition_"
    partition = leader_of(brokers, image.name, told.partition_index)
    if partition is not None:
        log = partition.log
        found.gauge(f"{prefix}current_offset", "The next offset", log.high_watermark, **labels)
        found.gauge(f"{prefix}oldest_offset", "The first offset", log.log_start_offset, **labels)
    in_sync, replicas = len(told.isr_nodes), len(told.replica_nodes)
    preferred = told.leader_id == told.replica_nodes[0]
    found.gauge(f"{prefix}leader", "The broker that leads", told.leader_id, **labels)
    found.gauge(f"{prefix}leader_is_preferred", "1: the first replica leads", int(preferred), **labels)
    found.gauge(f"{prefix}replicas", "Replicas", replicas, **labels)
    found.gauge(f"{prefix}in_sync_replica", "Replicas in sync", in_sync, **labels)
    under = int(in_sync < replicas)
    found.gauge(f"{prefix}under_replicated_partition", "1: not all replicas are in sync", under, **labels)


def add_groups(found: Families, brokers: list[Broker], with_partitions: bool) -> Iterator[None]:
    for broker in brokers:
        for shard in list(broker.groups.shards):
            for group in list(shard.groups.values()):
                _add_group(found, brokers, shard, group, with_partitions)
                yield


def _add_group(
    found: Families, brokers: list[Broker], shard: GroupShard, group: AnyGroup, with_partitions: bool
) -> None:
    prefix, group_id = "kafka_consumergroup_", group.group_id
    found.gauge(f"{prefix}members", "Members of a group", len(group.identities()), consumergroup=group_id)
    sums: dict[str, list[int]] = {}
    for (topic, index), committed in shard.offsets.of_group(group_id).items():
        partition = leader_of(brokers, topic, index)
        lag = 0 if partition is None else max(partition.log.high_watermark - committed.offset, 0)
        of_topic = sums.setdefault(topic, [0, 0])
        of_topic[0] += committed.offset
        of_topic[1] += lag
        if with_partitions:
            labels = {"consumergroup": group_id, "topic": topic, "partition": index}
            found.gauge(f"{prefix}current_offset", "The offset that a group has committed", committed.offset, **labels)
            found.gauge(f"{prefix}lag", "How many records a group is behind", lag, **labels)
    for topic, (offset, lag) in sums.items():
        found.gauge(
            f"{prefix}current_offset_sum",
            "The sum of a topic's committed offsets",
            offset,
            consumergroup=group_id,
            topic=topic,
        )
        found.gauge(
            f"{prefix}lag_sum",
            "How many records of a topic a group is behind",
            lag,
            consumergroup=group_id,
            topic=topic,
        )

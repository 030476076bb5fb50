"""What the page shows, as data for JSON: each view a function of the brokers and of what was asked.

A view looks only at what is on its page: fifty topics or groups, not all of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.config import TopicConfig
from barnabas.broker.console.errors import ConsoleError, NotFound
from barnabas.broker.console.stories import told_of
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.replica.traffic import TopicTraffic
from barnabas.broker.testing.fleet import leader_of
from barnabas.broker.testing.nodes import describe
from barnabas.broker.testing.state import connections, group_state, partition_state, set_aside, transactions
from barnabas.version import VERSION

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.controller.images import TopicImage
    from barnabas.broker.group.kind import AnyGroup
    from barnabas.broker.group.shard import GroupShard
    from barnabas.broker.local_cluster import LocalCluster

Json = dict[str, Any]
Query = Mapping[str, str]
T = TypeVar("T")

PAGE: Final = 50
_MOST_CONNECTIONS: Final = 500


class Views:
    def __init__(self, cluster: LocalCluster, metrics: Metrics, *, writes: bool) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._writes = writes
        self._started_ms = cluster.clock.now_ms()
        self.table: dict[str, Callable[[Query], Any]] = {
            "overview": self.overview,
            "topics": self.topics,
            "topic": self.topic,
            "groups": self.groups,
            "group": self.group,
            "connections": self.connections,
            "transactions": self.transactions,
        }

    # --- the whole ---

    def overview(self, query: Query) -> Json:
        cluster = self._cluster
        teller = self._teller()
        images = teller.cluster.topics.values()
        traffic = TopicTraffic()
        for broker in cluster.brokers:
            traffic.add(broker.replicas.traffic.total())
        clients = [each for broker in cluster.brokers for each in broker.server.connections if not each.is_from_broker]
        return {
            "version": VERSION,
            "cluster_id": teller.cluster.cluster_id,
            "now_ms": cluster.clock.now_ms(),
            "started_ms": self._started_ms,
            "writes": self._writes,
            "brokers": [describe(cluster, node) for node in cluster.nodes.values()],
            "topics": sum(not image.is_internal for image in images),
            "partitions": sum(len(image.partitions) for image in images if not image.is_internal),
            "without_leader": sum(each.leader_id < 0 for image in images for each in image.partitions),
            "groups": sum(len(shard.groups) for broker in cluster.brokers for shard in broker.groups.shards),
            "connections": len(clients),
            "clients": sorted({each.client_id for each in clients if each.client_id})[:PAGE],
            "traffic": _counts(traffic),
            "requests": sum(api.total for counts in self._metrics.requests.values() for api in counts.apis.values()),
            "set_aside": set_aside(cluster)[:PAGE],
        }

    def _teller(self) -> Broker:
        """The broker that hears of changes first."""
        found = self._cluster.controller or next(iter(self._cluster.brokers), None)
        if found is None:
            raise ConsoleError("no broker is running")
        return found

    # --- topics ---

    def topics(self, query: Query) -> Json:
        text, with_internal = query.get("search", "").lower(), query.get("internal") == "true"
        images = self._teller().cluster.topics
        names = sorted(
            name for name, image in images.items() if text in name.lower() and (with_internal or not image.is_internal)
        )
        return _paged(names, query, lambda name: self._topic_row(images[name]))

    def _topic_row(self, image: TopicImage) -> Json:
        brokers = list(self._cluster.brokers)
        traffic = TopicTraffic()
        for broker in brokers:
            of_topic = broker.replicas.traffic.topics.get(image.name)
            if of_topic is not None:
                traffic.add(of_topic)
        logs = [
            found.log
            for told in image.partitions
            if (found := leader_of(brokers, image.name, told.partition_index)) is not None
        ]
        return {
            "name": image.name,
            "internal": image.is_internal,
            "partitions": len(image.partitions),
            "replicas": max((len(told.replica_nodes) for told in image.partitions), default=0),
            "under_replicated": sum(len(told.isr_nodes) < len(told.replica_nodes) for told in image.partitions),
            "messages": sum(log.high_watermark - log.log_start_offset for log in logs),
            "size": sum(log.size for log in logs),
            "traffic": _counts(traffic),
        }

    def topic(self, query: Query) -> Json:
        name = query.get("name", "")
        teller = self._teller()
        image = teller.cluster.topic(name)
        if image is None:
            raise NotFound(f"there is no topic {name!r}")
        brokers = list(self._cluster.brokers)
        page, first = _page(query)
        partitions = []
        for told in image.partitions[first : first + PAGE]:
            found = leader_of(brokers, name, told.partition_index)
            if found is None:
                partitions.append({"partition": told.partition_index, "leader": told.leader_id, "elsewhere": True})
            else:
                partitions.append(partition_state(told, found))
        return {
            **self._topic_row(image),
            "id": str(uuid.UUID(bytes=image.topic_id)),
            "page": page,
            "pages": _pages(len(image.partitions)),
            "partition_list": partitions,
            "configs": [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source.name,
                    "overrides": [synonym.value for synonym in entry.synonyms[1:]],
                }
                for entry in TopicConfig.stored(image.configs, teller.config).describe(None)
            ],
            "segments": self._segments(name, query.get("segments")),
            "group_list": [
                group_id
                for _, group_id, (shard, group) in self._all_groups()
                if any(topic == name for topic, _ in shard.offsets.of_group(group.group_id))
            ][:PAGE],
        }

    def _segments(self, topic: str, index: str | None) -> Json | None:
        """The files of one partition, if somebody looks at it."""
        if index is None or not index.isdigit():
            return None
        partition = leader_of(list(self._cluster.brokers), topic, int(index))
        if partition is None:
            return None
        log = partition.log
        return {
            "partition": partition.index,
            "files": [
                {"base_offset": segment.base_offset, "end_offset": end, "size": segment.size, "path": segment.path}
                for segment, end in list(log.segments.with_ends(log.end_offset))[-PAGE:]
            ],
        }

    # --- groups ---

    def _all_groups(self) -> Iterable[tuple[Broker, str, tuple[GroupShard, AnyGroup]]]:
        for broker in self._cluster.brokers:
            for shard in broker.groups.shards:
                for group_id, group in shard.groups.items():
                    yield broker, group_id, (shard, group)

    def groups(self, query: Query) -> Json:
        text = query.get("search", "").lower()
        found = {group_id: pair for _, group_id, pair in self._all_groups() if text in group_id.lower()}
        return _paged(sorted(found), query, lambda group_id: self._group_row(*found[group_id]))

    def _group_row(self, shard: GroupShard, group: AnyGroup) -> Json:
        brokers = list(self._cluster.brokers)
        offsets = shard.offsets.of_group(group.group_id)
        lag = 0
        for (topic, index), committed in offsets.items():
            partition = leader_of(brokers, topic, index)
            if partition is not None:
                lag += max(partition.log.high_watermark - committed.offset, 0)
        return {
            "name": group.group_id,
            "state": group.state_name,
            "type": group.kind.value,
            "members": len(group.identities()),
            "generation": group.generation,
            "topics": sorted({topic for topic, _ in offsets})[:PAGE],
            "partitions": len(offsets),
            "lag": lag,
        }

    def group(self, query: Query) -> Json:
        name = query.get("name", "")
        for broker, group_id, (shard, group) in self._all_groups():
            if group_id == name:
                state = group_state(self._cluster, shard, group)
                return {
                    **self._group_row(shard, group),
                    "coordinator": broker.config.node_id,
                    **state,
                    "ends": self._ends(shard, name),
                    "rebalances": told_of(group),
                    "member_list": state["members"],
                    "members": len(group.identities()),
                }
        raise NotFound(f"there is no group {name!r}")

    def _ends(self, shard: GroupShard, group_id: str) -> dict[str, list[int]]:
        """Where the partitions begin and end of which a group has committed offsets."""
        brokers = list(self._cluster.brokers)
        return {
            f"{topic}/{index}": [found.log.log_start_offset, found.log.high_watermark]
            for topic, index in shard.offsets.of_group(group_id)
            if (found := leader_of(brokers, topic, index)) is not None
        }

    # --- the rest ---

    def connections(self, query: Query) -> Json:
        found = connections(self._cluster)
        return {
            "total": len(found),
            "rows": found[:_MOST_CONNECTIONS],
            "requests": [
                {
                    "api": api.name,
                    "total": api.total,
                    "versions": sorted(api.by_version),
                    "median_ms": _quantile(api.times, 0.5),
                    "p99_ms": _quantile(api.times, 0.99),
                }
                for api in sorted(self._request_counts(), key=lambda api: -api.total)
                if api.total
            ],
        }

    def _request_counts(self) -> list[Any]:
        return [api for counts in self._metrics.requests.values() for api in counts.apis.values()]

    def transactions(self, query: Query) -> Json:
        found = transactions(self._cluster)
        return {"total": len(found), "rows": [{"name": name, **told} for name, told in found.items()][:PAGE]}


def _counts(traffic: TopicTraffic) -> Json:
    return {
        "messages_in": traffic.messages_in,
        "bytes_in": traffic.bytes_in,
        "bytes_out": traffic.bytes_out,
        "failed": traffic.failed_produces + traffic.failed_fetches,
    }


def _quantile(times: Iterable[float], quantile: float) -> float | None:
    found = sorted(times)
    return round(found[min(int(quantile * len(found)), len(found) - 1)] * 1000, 3) if found else None


def _page(query: Query) -> tuple[int, int]:
    text = query.get("page", "0")
    if not text.isdigit() or len(text) > 9:
        raise ConsoleError("page is a number")
    return int(text), int(text) * PAGE


def _pages(count: int) -> int:
    return max((count + PAGE - 1) // PAGE, 1)


def _paged(items: list[T], query: Query, row: Callable[[T], Json]) -> Json:
    page, first = _page(query)
    return {
        "total": len(items),
        "page": page,
        "pages": _pages(len(items)),
        "rows": [row(item) for item in items[first : first + PAGE]],
    }

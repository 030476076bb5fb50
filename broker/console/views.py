"""What the page shows, as data for JSON: each view a function of the brokers, of who asks, and of what was asked.

A view looks only at what is on its page: fifty topics or groups, not all of them. What somebody may not describe is not
there for them: it is neither shown nor counted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config import TopicConfig
from barnabas.broker.console.activity import Activity
from barnabas.broker.console.errors import ConsoleError, NotFound
from barnabas.broker.console.lags import LagHistory
from barnabas.broker.console.messages import timestamp_at
from barnabas.broker.console.paging import PAGE, Json, Query, page_of, paged, pages
from barnabas.broker.console.positions import Place, Position, described, lag_of, positions_of, reads
from barnabas.broker.console.stories import told_of
from barnabas.broker.group.kind import GroupKind
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.replica.traffic import TopicTraffic
from barnabas.broker.security.authorizer import Access
from barnabas.broker.server.addresses import host_and_port
from barnabas.broker.testing.fleet import leader_of
from barnabas.broker.testing.nodes import describe
from barnabas.broker.testing.state import membership_state, partition_state, set_aside
from barnabas.protocol.acls import AclOperation
from barnabas.version import VERSION

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.controller.images import BrokerImage, PartitionImage, TopicImage
    from barnabas.broker.group.kind import AnyGroup
    from barnabas.broker.group.shard import GroupShard
    from barnabas.broker.local_cluster import LocalCluster

View = Callable[[Access, Query], Any]

_DESCRIBE: Final = AclOperation.DESCRIBE
# For how many partitions of a group its lag in time is looked up.
_MOST_LOOKED_UP: Final = 100
# What a user may do to a topic besides describing it.
_CHANGES: Final = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DELETE,
)


class Views:
    def __init__(
        self, cluster: LocalCluster, metrics: Metrics, lags: LagHistory, *, writes: bool, controls: bool
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._lags = lags
        self._writes = writes
        self._controls = controls
        self._started_ms = cluster.clock.now_ms()
        activity = Activity(cluster, metrics)
        self.table: dict[str, View] = {
            "overview": self.overview,
            "topics": self.topics,
            "topic": self.topic,
            "groups": self.groups,
            "group": self.group,
            "lag": self.lag,
            "connections": activity.connections,
            "transactions": activity.transactions,
            "transaction": activity.transaction,
            "retries": activity.retries,
            "leaders": activity.leaders,
        }

    # --- the whole ---

    def overview(self, access: Access, query: Query) -> Json:
        cluster = self._cluster
        teller = self._teller()
        images = [image for name, image in teller.cluster.topics.items() if access.topic(_DESCRIBE, name)]
        sees_all = access.cluster(_DESCRIBE)
        traffic = TopicTraffic()
        for broker in cluster.brokers:
            traffic.add(broker.replicas.traffic.total() if sees_all else _traffic_of(broker, images))
        clients = [
            each
            for broker in (cluster.brokers if sees_all else ())
            for each in broker.server.connections
            if not each.is_from_broker
        ]
        return {
            "version": VERSION,
            "cluster_id": teller.cluster.cluster_id,
            "now_ms": cluster.clock.now_ms(),
            "started_ms": self._started_ms,
            "writes": self._writes,
            "controls": self._controls and access.cluster(AclOperation.ALTER),
            "sees_cluster": sees_all,
            "brokers": [describe(cluster, node) for node in cluster.nodes.values()],
            "other_brokers": [
                {"id": each.broker_id, "address": _address(each, teller.server.listeners[0].name)}
                for each in list(teller.cluster.brokers.values())[:PAGE]
                if each.broker_id not in cluster.nodes
            ],
            "topics": sum(not image.is_internal for image in images),
            "partitions": sum(len(image.partitions) for image in images if not image.is_internal),
            "without_leader": sum(each.leader_id < 0 for image in images for each in image.partitions),
            "groups": sum(1 for _ in self._all_groups(access)),
            "connections": len(clients),
            "clients": sorted({each.client_id for each in clients if each.client_id})[:PAGE],
            "traffic": _counts(traffic),
            "requests": sum(api.total for counts in self._metrics.requests.values() for api in counts.apis.values())
            if sees_all
            else 0,
            "set_aside": set_aside(cluster)[:PAGE] if sees_all else [],
        }

    def _teller(self) -> Broker:
        """The broker that hears of changes first."""
        found = self._cluster.controller or next(iter(self._cluster.brokers), None)
        if found is None:
            raise ConsoleError("no broker is running")
        return found

    # --- topics ---

    def topics(self, access: Access, query: Query) -> Json:
        text, with_internal = query.get("search", "").lower(), query.get("internal") == "true"
        images = self._teller().cluster.topics
        names = sorted(
            name
            for name, image in images.items()
            if text in name.lower() and (with_internal or not image.is_internal) and access.topic(_DESCRIBE, name)
        )
        return paged(names, query, lambda name: self._topic_row(images[name]))

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
            "elsewhere": len(image.partitions) - len(logs),
            "messages": sum(log.high_watermark - log.log_start_offset for log in logs),
            "size": sum(log.size for log in logs),
            "traffic": _counts(traffic),
        }

    def topic(self, access: Access, query: Query) -> Json:
        name = query.get("name", "")
        teller = self._teller()
        image = teller.cluster.topic(name) if access.topic(_DESCRIBE, name) else None
        if image is None:
            raise NotFound(f"there is no topic {name!r}")
        brokers = list(self._cluster.brokers)
        page, first = page_of(query)
        partitions = []
        for told in image.partitions[first : first + PAGE]:
            found = leader_of(brokers, name, told.partition_index)
            if found is None:
                partitions.append(_elsewhere(told))
            else:
                partitions.append(partition_state(told, found))
        return {
            **self._topic_row(image),
            "id": str(uuid.UUID(bytes=image.topic_id)),
            "page": page,
            "pages": pages(len(image.partitions)),
            "partition_list": partitions,
            "configs": [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source.name,
                    "overrides": [synonym.value for synonym in entry.synonyms[1:]],
                }
                for entry in TopicConfig.stored(image.configs, teller.config).describe(None)
            ]
            if access.topic(AclOperation.DESCRIBE_CONFIGS, name)
            else [],
            "segments": self._segments(name, query.get("segments")) if access.cluster(_DESCRIBE) else None,
            "may": {each.name.lower(): self._writes and access.topic(each, name) for each in _CHANGES},
            "group_list": [
                group_id
                for _, group_id, (shard, group) in self._all_groups(access)
                if reads(shard, group, name, image.topic_id)
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

    def _all_groups(self, access: Access) -> Iterable[tuple[Broker, str, tuple[GroupShard, AnyGroup]]]:
        for broker in self._cluster.brokers:
            for shard in broker.groups.shards:
                for group_id, group in shard.groups.items():
                    if access.group(_DESCRIBE, group_id):
                        yield broker, group_id, (shard, group)

    def groups(self, access: Access, query: Query) -> Json:
        text = query.get("search", "").lower()
        found = {group_id: pair for _, group_id, pair in self._all_groups(access) if text in group_id.lower()}
        return paged(sorted(found), query, lambda group_id: self._group_row(access, *found[group_id]))

    def _group_row(self, access: Access, shard: GroupShard, group: AnyGroup) -> Json:
        brokers = list(self._cluster.brokers)
        positions = self._positions(access, shard, group)
        lag, elsewhere = lag_of(brokers, positions)
        return {
            "name": group.group_id,
            "state": group.state_name,
            "type": group.kind.value,
            "members": len(group.identities()),
            "generation": group.generation,
            "topics": sorted({topic for topic, _ in positions})[:PAGE],
            "partitions": len(positions),
            "lag": lag,
            "elsewhere": elsewhere,
        }

    def group(self, access: Access, query: Query) -> Json:
        name = query.get("name", "")
        found = next((each for each in self._all_groups(access) if each[1] == name), None)
        if found is None:
            raise NotFound(f"there is no group {name!r}")
        coordinator, _, (shard, group) = found
        state = membership_state(self._cluster, shard, group)
        brokers = list(self._cluster.brokers)
        positions = self._positions(access, shard, group)
        shown = paged(sorted(positions), query, lambda place: described(brokers, place, positions[place]))
        self._add_lateness(shown["rows"])
        return {
            **self._group_row(access, shard, group),
            "coordinator": coordinator.config.node_id,
            **state,
            "offsets": shown["rows"],
            "page": shown["page"],
            "pages": shown["pages"],
            "ends": self._ends(shown["rows"]),
            "rebalances": told_of(shard, group, self._topic_names()),
            "may": {
                # The offsets of a share group are not committed: its share coordinator has them.
                "read": self._writes and access.group(AclOperation.READ, name) and group.kind is not GroupKind.SHARE,
                "delete": self._writes and access.group(AclOperation.DELETE, name),
            },
            "member_list": state["members"],
            "members": len(group.identities()),
        }

    def _positions(self, access: Access, shard: GroupShard, group: AnyGroup) -> dict[Place, Position]:
        found = positions_of(list(self._cluster.brokers), shard, group)
        return {place: position for place, position in found if access.topic(_DESCRIBE, place[0])}

    def lag(self, access: Access, query: Query) -> Json:
        """How far a group was behind in the last minutes."""
        name = query.get("name", "")
        if not access.group(_DESCRIBE, name):
            raise NotFound(f"there is no group {name!r}")
        return self._lags.of(name, lambda topic: access.topic(_DESCRIBE, topic))

    def _topic_names(self) -> dict[bytes, str]:
        return {image.topic_id: name for name, image in self._teller().cluster.topics.items()}

    def _add_lateness(self, offsets: list[Json]) -> None:
        """How old the first record is that a group has not read: how far it is behind in time."""
        brokers, now_ms = list(self._cluster.brokers), self._cluster.clock.now_ms()
        for row in [row for row in offsets if row["lag"]][:_MOST_LOOKED_UP]:
            partition = leader_of(brokers, row["topic"], row["partition"])
            timestamp = None if partition is None else timestamp_at(partition.log, row["offset"])
            row["late_ms"] = None if timestamp is None else max(now_ms - timestamp, 0)

    def _ends(self, offsets: list[Json]) -> dict[str, list[int]]:
        """Where the partitions begin and end of which a group has committed offsets."""
        brokers = list(self._cluster.brokers)
        return {
            f"{row['topic']}/{row['partition']}": [found.log.log_start_offset, found.log.high_watermark]
            for row in offsets
            if (found := leader_of(brokers, row["topic"], row["partition"])) is not None
        }


def _address(broker: BrokerImage, listener: str) -> str | None:
    """Where clients of this listener reach a broker of another process."""
    found = next((each for each in broker.endpoints if each.name == listener), None)
    return None if found is None else host_and_port(found.host, found.port)


def _elsewhere(told: PartitionImage) -> Json:
    """A partition of which this process has no copy: what the controller says."""
    return {
        "partition": told.partition_index,
        "leader": told.leader_id,
        "replicas": list(told.replica_nodes),
        "isr": list(told.isr_nodes),
        "leader_epoch": told.leader_epoch,
        "elsewhere": True,
    }


def _traffic_of(broker: Broker, images: Iterable[TopicImage]) -> TopicTraffic:
    traffic = TopicTraffic()
    for image in images:
        of_topic = broker.replicas.traffic.topics.get(image.name)
        if of_topic is not None:
            traffic.add(of_topic)
    return traffic


def _counts(traffic: TopicTraffic) -> Json:
    return {
        "messages_in": traffic.messages_in,
        "bytes_in": traffic.bytes_in,
        "bytes_out": traffic.bytes_out,
        "failed": traffic.failed_produces + traffic.failed_fetches,
    }

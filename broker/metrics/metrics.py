"""The metrics of the brokers of this process, collected when somebody asks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from barnabas.broker.metrics import of_broker, of_cluster
from barnabas.broker.metrics.families import Families, Family
from barnabas.broker.metrics.of_process import Process
from barnabas.broker.server.request_counts import RequestCounts
from barnabas.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster

# With more partitions than this, per-partition metrics are left out, unless they are asked for.
MANY_PARTITIONS: Final = 2000
# How long collecting may hold up the loop at once.
_SECONDS_AT_ONCE: Final = 0.005


class Metrics:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.requests: dict[int, RequestCounts] = {}
        self._process = Process(asyncio.get_running_loop())
        for broker in cluster.brokers:
            self._attach(broker)
        cluster.on_started.append(self._attach)

    def start(self) -> None:
        self._process.start()

    def stop(self) -> None:
        self._process.stop()
        self._cluster.on_started.remove(self._attach)

    def _attach(self, broker: Broker) -> None:
        counts = self.requests.setdefault(broker.config.node_id, RequestCounts(time.perf_counter))
        counts.attach(broker.server.dispatcher)

    async def collect(self, with_partitions: bool | None = None) -> list[Family]:
        """`with_partitions` says whether to name each partition; by default, if there are not too many."""
        found = Families()
        cluster = self._cluster
        brokers = list(cluster.brokers)
        found.gauge("barnabas_info", "The version", 1, version=VERSION)
        # What dashboards for kafka_exporter look for to find clusters.
        found.gauge("kafka_exporter_build_info", "The version", 1, version=VERSION)
        self._process.add(found)
        teller = cluster.controller or next(iter(brokers), None)
        if teller is None:
            return found.all()
        count = sum(len(topic.partitions) for topic in teller.cluster.topics.values())
        if with_partitions is None:
            with_partitions = count <= MANY_PARTITIONS
        found.gauge(
            "barnabas_metrics_partitions_left_out", "Partitions without metrics", 0 if with_partitions else count
        )
        rested = time.perf_counter()
        for _ in self._steps(found, brokers, teller, with_partitions):
            if time.perf_counter() - rested > _SECONDS_AT_ONCE:
                await asyncio.sleep(0)
                rested = time.perf_counter()
        return found.all()

    def _steps(self, found: Families, brokers: list[Broker], teller: Broker, with_partitions: bool) -> Iterator[None]:
        several = len(self._cluster.nodes) > 1
        for broker in brokers:
            labels: dict[str, object] = {"broker": broker.config.node_id} if several else {}
            of_broker.add_broker(found, broker, labels)
            yield from of_broker.add_traffic(found, broker, labels)
            yield
            of_broker.add_requests(found, self.requests[broker.config.node_id], labels)
            of_broker.add_connections(found, broker, labels)
            of_broker.add_groups(found, broker, labels)
            yield from of_broker.add_replicas(found, broker, labels)
            for partition in list(broker.replicas) if with_partitions else ():
                of_broker.add_partition(found, partition, labels)
                yield
        yield from of_cluster.add_topics(found, brokers, teller, with_partitions)
        yield from of_cluster.add_groups(found, brokers, with_partitions)

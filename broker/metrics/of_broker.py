"""What Apache Kafka's brokers report by JMX, under the names that jmx_exporter gives them.

Strimzi's configuration calls a counter `…_messagesin_total` where Confluent's calls it `…_messagesinpersec`. Dashboards
of both kinds are common, so those counters have both names. Labels of a broker's own metrics include `broker` where
the process has several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.group.classic.states import GroupState
from barnabas.broker.metrics.families import Families
from barnabas.protocol.error_counts import error_name

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replica.partition import Partition
    from barnabas.broker.replica.traffic import TopicTraffic
    from barnabas.broker.server.request_counts import ApiCounts, RequestCounts

# Kafka's states of a broker; one that answers here is running.
_RUNNING: Final = 3
_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

# Each count of a topic, in Strimzi's and in Confluent's spelling.
_TOPIC_COUNTS: Final = (
    ("messages_in", "messagesin", "Records appended"),
    ("bytes_in", "bytesin", "Bytes appended"),
    ("bytes_out", "bytesout", "Bytes that consumers have fetched"),
    ("produces", "totalproducerequests", "Appends, counted per partition"),
    ("failed_produces", "failedproducerequests", "Appends that were refused"),
    ("fetches", "totalfetchrequests", "Reads, counted per partition"),
    ("failed_fetches", "failedfetchrequests", "Reads that failed"),
    ("replication_bytes_in", "replicationbytesin", "Bytes copied from leaders"),
    ("replication_bytes_out", "replicationbytesout", "Bytes copied by followers"),
)
# These come with and without the topic; Kafka has bytes of replication only as a total.
_WITHOUT_TOPIC: Final = ("replication_bytes_in", "replication_bytes_out")


def add_traffic(found: Families, broker: Broker, labels: Mapping[str, object]) -> Iterator[None]:
    traffic = broker.replicas.traffic
    _add_counts(found, traffic.total(), False, labels)
    for topic, counts in list(traffic.topics.items()):
        _add_counts(found, counts, True, {**labels, "topic": topic})
        yield


def _add_counts(found: Families, counts: TopicTraffic, is_topic: bool, labels: Mapping[str, object]) -> None:
    for attribute, name, meaning in _TOPIC_COUNTS:
        if is_topic and attribute in _WITHOUT_TOPIC:
            continue
        value = getattr(counts, attribute)
        found.counter(f"kafka_server_brokertopicmetrics_{name}_total", meaning, value, **labels)
        found.gauge(f"kafka_server_brokertopicmetrics_{name}persec", f"{meaning}, as a count", value, **labels)


def add_requests(found: Families, counts: RequestCounts, labels: Mapping[str, object]) -> None:
    for api in list(counts.apis.values()):
        if api.total:
            _add_api(found, api, labels)


def _add_api(found: Families, api: ApiCounts, labels: Mapping[str, object]) -> None:
    for version, count in api.by_version.items():
        full = {**labels, "request": api.name, "version": version}
        found.counter("kafka_network_requestmetrics_requests_total", "Requests", count, **full)
        found.gauge("kafka_network_requestmetrics_requestspersec", "Requests, as a count", count, **full)
    for code, count in api.errors.items():
        full = {**labels, "request": api.name, "error": error_name(code)}
        found.counter("kafka_network_requestmetrics_errors_total", "Errors in answers", count, **full)
        found.gauge("kafka_network_requestmetrics_errorspersec", "Errors in answers, as a count", count, **full)
    times = sorted(api.times)
    for quantile in _QUANTILES if times else ():
        at = times[min(int(quantile * len(times)), len(times) - 1)]
        found.gauge(
            "kafka_network_requestmetrics_totaltimems",
            "How long it took to answer the requests that were timed recently",
            at * 1000,
            **labels,
            request=api.name,
            quantile=quantile,
        )
    found.counter(
        "kafka_network_requestmetrics_totaltimems_count",
        "Requests, timed or not",
        api.total,
        **labels,
        request=api.name,
    )


def add_replicas(found: Families, broker: Broker, labels: Mapping[str, object]) -> Iterator[None]:
    """Sums over the partitions of a broker, a few of them in each step."""
    sums: Counter[str] = Counter()
    for number, partition in enumerate(list(broker.replicas)):
        _sum_up(sums, partition)
        if number % 200 == 199:
            yield
    expands, shrinks = broker.replicas.isr_changes
    manager = "kafka_server_replicamanager_"
    found.gauge(f"{manager}partitioncount", "Replicas on this broker", sums["replicas"], **labels)
    found.gauge(f"{manager}leadercount", "Partitions that this broker leads", sums["led"], **labels)
    found.gauge(
        f"{manager}underreplicatedpartitions", "Led here, with fewer in sync than replicas", sums["under"], **labels
    )
    found.gauge(f"{manager}underminisrpartitioncount", "Led here, below min.insync.replicas", sums["below"], **labels)
    found.gauge(f"{manager}atminisrpartitioncount", "Led here, exactly at min.insync.replicas", sums["at"], **labels)
    found.gauge(f"{manager}offlinereplicacount", "Replicas whose log has failed", sums["failed"], **labels)
    found.counter(f"{manager}isrexpands_total", "Requests to add a replica to an ISR", expands, **labels)
    found.counter(f"{manager}isrshrinks_total", "Requests to remove a replica from an ISR", shrinks, **labels)
    found.gauge(f"{manager}isrexpandspersec", "Requests to add a replica to an ISR, as a count", expands, **labels)
    found.gauge(f"{manager}isrshrinkspersec", "Requests to remove a replica from an ISR, as a count", shrinks, **labels)


def _sum_up(sums: Counter[str], partition: Partition) -> None:
    sums["replicas"] += 1
    sums["failed"] += partition.log.failed
    leadership = partition.leadership
    if leadership is not None:
        wanted = partition.log.config.min_insync_replicas
        sums["led"] += 1
        sums["under"] += len(leadership.isr) < len(leadership.replicas)
        sums["below"] += len(leadership.isr) < wanted
        sums["at"] += len(leadership.isr) == wanted


def add_groups(found: Families, broker: Broker, labels: Mapping[str, object]) -> None:
    groups = [group for shard in broker.groups.shards for group in shard.groups.values()]
    states = Counter(group.state_name for group in groups)
    offsets = sum(len(shard.offsets.of_group(group_id)) for shard in broker.groups.shards for group_id in shard.groups)
    manager = "kafka_coordinator_group_groupmetadatamanager_"
    found.gauge(f"{manager}numgroups", "Groups that this broker coordinates", len(groups), **labels)
    found.gauge(f"{manager}numoffsets", "Offsets that these groups have committed", offsets, **labels)
    for state in GroupState:
        meaning = f"Groups in the state {state.value}"
        found.gauge(f"{manager}numgroups{state.value.lower()}", meaning, states[state.value], **labels)


def add_connections(found: Families, broker: Broker, labels: Mapping[str, object]) -> None:
    on_listener = Counter(connection.listener.name for connection in broker.server.connections)
    for listener in broker.server.listeners:
        name, count = listener.name, on_listener[listener.name]
        more = {**labels, "listener": name, "networkProcessor": 0}
        found.gauge("kafka_server_socket_server_metrics_connection_count", "Open connections", count, **more)
        confluent = {**labels, "listener": name, "network_processor": 0}
        found.gauge("kafka_server_socketservermetrics_connection_count", "Open connections", count, **confluent)


def add_broker(found: Families, broker: Broker, labels: Mapping[str, object]) -> None:
    found.gauge("kafka_server_kafkaserver_brokerstate", "3: it is running", _RUNNING, **labels)
    is_controller = broker.controller.term is not None
    cluster, controller = broker.cluster, "kafka_controller_kafkacontroller_"
    found.gauge(f"{controller}activecontrollercount", "1 on the controller", int(is_controller), **labels)
    topics = list(cluster.topics.values()) if is_controller else []
    partitions = [each for topic in topics for each in topic.partitions]
    brokers = len(cluster.brokers) if is_controller else 0
    offline = sum(each.leader_id < 0 for each in partitions)
    elsewhere = sum(each.leader_id != each.replica_nodes[0] for each in partitions)
    unclean = 0 if broker.controller.term is None else broker.controller.term.unclean_elections
    stats, meaning = "kafka_controller_controllerstats_", "Leaders that were not in sync when they were elected"
    found.counter(f"{stats}uncleanleaderelections_total", meaning, unclean, **labels)
    found.gauge(f"{stats}uncleanleaderelectionspersec", f"{meaning}, as a count", unclean, **labels)
    found.gauge(f"{controller}globaltopiccount", "Topics, on the controller", len(topics), **labels)
    found.gauge(f"{controller}globalpartitioncount", "Partitions, on the controller", len(partitions), **labels)
    found.gauge(f"{controller}activebrokercount", "Brokers, on the controller", brokers, **labels)
    found.gauge(f"{controller}offlinepartitionscount", "Partitions without a leader", offline, **labels)
    found.gauge(
        f"{controller}preferredreplicaimbalancecount",
        "Partitions that are not led by their first replica",
        elsewhere,
        **labels,
    )


def add_partition(found: Families, partition: Partition, labels: Mapping[str, object]) -> None:
    """What one replica has; for a leader, also the state of its followers."""
    log = partition.log
    full = {**labels, "topic": partition.topic, "partition": partition.index}
    found.gauge("kafka_log_log_size", "Bytes on disk", log.size, **full)
    found.gauge("kafka_log_log_logstartoffset", "The first offset", log.log_start_offset, **full)
    found.gauge("kafka_log_log_logendoffset", "The next offset", log.end_offset, **full)
    found.gauge("kafka_log_log_numlogsegments", "Segments", len(log.segments), **full)
    leadership = partition.leadership
    if leadership is None:
        return
    in_sync, replicas, wanted = len(leadership.isr), len(leadership.replicas), log.config.min_insync_replicas
    prefix = "kafka_cluster_partition_"
    found.gauge(f"{prefix}replicascount", "Replicas", replicas, **full)
    found.gauge(f"{prefix}insyncreplicascount", "Replicas in sync", in_sync, **full)
    found.gauge(f"{prefix}underreplicated", "1: not all replicas are in sync", int(in_sync < replicas), **full)
    found.gauge(f"{prefix}underminisr", "1: fewer than min.insync.replicas", int(in_sync < wanted), **full)
    found.gauge(f"{prefix}atminisr", "1: exactly min.insync.replicas", int(in_sync == wanted), **full)
    lag = log.high_watermark - log.last_stable_offset
    found.gauge(f"{prefix}laststableoffsetlag", "Records after the last stable offset", lag, **full)

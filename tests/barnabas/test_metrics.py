"""The metrics of a broker, as a test asks for them: with real clients behind the figures."""

import json
import re
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from barnabas import Barnabas

pytestmark = pytest.mark.slow  # starts a process

_ROOT = Path(__file__).parents[2]

# What the panels of well-known dashboards ask for: names of metrics, with the labels that they use. Those of the JVM,
# Kubernetes, ZooKeeper and KRaft, which this broker does not have, are left out.
_STRIMZI_KAFKA = {  # strimzi-kafka.json
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_server_replicamanager_isrshrinks_total": set(),
    "kafka_server_replicamanager_isrexpands_total": set(),
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_controller_kafkacontroller_offlinepartitionscount": set(),
    "kafka_cluster_partition_atminisr": {"topic", "partition"},
    "kafka_cluster_partition_underminisr": {"topic", "partition"},
    "kafka_cluster_partition_underreplicated": {"topic", "partition"},
    "kafka_cluster_partition_replicascount": {"topic", "partition"},
    "kafka_cluster_partition_insyncreplicascount": {"topic", "partition"},
    "kafka_server_brokertopicmetrics_bytesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_bytesout_total": {"topic"},
    "kafka_server_brokertopicmetrics_messagesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedfetchrequests_total": {"topic"},
    "kafka_network_socketserver_networkprocessoravgidle_percent": set(),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": set(),
    "kafka_server_socket_server_metrics_connection_count": {"listener"},
    "kafka_log_log_size": {"topic", "partition"},
    "kafka_controller_controllerstats_uncleanleaderelections_total": set(),
    "kafka_server_kafkaserver_linux_disk_read_bytes": set(),
    "kafka_server_kafkaserver_linux_disk_write_bytes": set(),
    "process_open_fds": set(),
}
_STRIMZI_EXPORTER = {  # strimzi-kafka-exporter.json
    "kafka_exporter_build_info": set(),
    "kafka_cluster_partition_atminisr": {"topic"},
    "kafka_cluster_partition_underminisr": {"topic"},
    "kafka_topic_partitions": {"topic"},
    "kafka_topic_partition_replicas": {"topic", "partition"},
    "kafka_topic_partition_in_sync_replica": {"topic", "partition"},
    "kafka_topic_partition_under_replicated_partition": {"topic", "partition"},
    "kafka_topic_partition_leader_is_preferred": {"topic", "partition"},
    "kafka_topic_partition_oldest_offset": {"topic", "partition"},
    "kafka_topic_partition_current_offset": {"topic", "partition"},
    "kafka_consumergroup_current_offset": {"consumergroup", "topic", "partition"},
    "kafka_consumergroup_lag": {"consumergroup", "topic", "partition"},
}
_KAFKA_EXPORTER = {  # kafka_exporter_overview.json, Grafana's number 7589
    "kafka_brokers": set(),
    "kafka_topic_partitions": {"topic"},
    "kafka_topic_partition_current_offset": {"topic"},
    "kafka_consumergroup_current_offset": {"consumergroup", "topic"},
    "kafka_consumergroup_lag": {"consumergroup", "topic"},
    "kafka_consumergroup_lag_sum": {"consumergroup", "topic"},
    "kafka_consumergroup_members": {"consumergroup"},
}
_CONFLUENT = {  # the cluster and topic dashboards of Confluent's jmx-monitoring-stacks
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_controller_kafkacontroller_activebrokercount": set(),
    "kafka_controller_kafkacontroller_globaltopiccount": set(),
    "kafka_controller_kafkacontroller_globalpartitioncount": set(),
    "kafka_controller_kafkacontroller_offlinepartitionscount": set(),
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": set(),
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_server_replicamanager_underminisrpartitioncount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_isrshrinkspersec": set(),
    "kafka_server_replicamanager_isrexpandspersec": set(),
    "kafka_controller_controllerstats_uncleanleaderelectionspersec": set(),
    "kafka_cluster_partition_underminisr": {"topic", "partition"},
    "process_cpu_seconds_total": set(),
    "kafka_server_brokertopicmetrics_bytesinpersec": {"topic"},
    "kafka_server_brokertopicmetrics_bytesoutpersec": {"topic"},
    "kafka_server_brokertopicmetrics_messagesinpersec": {"topic"},
    "kafka_network_requestmetrics_requestspersec": {"request", "version"},
    "kafka_network_requestmetrics_totaltimems": {"request", "quantile"},
    "kafka_network_requestmetrics_errorspersec": {"request", "error"},
    "kafka_network_socketserver_networkprocessoravgidlepercent": set(),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total": set(),
    "kafka_server_socketservermetrics_connection_count": {"listener"},
    "kafka_coordinator_group_groupmetadatamanager_numgroups": set(),
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable": set(),
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance": set(),
    "kafka_log_log_size": {"topic", "partition"},
    "kafka_log_log_logstartoffset": {"topic", "partition"},
    "kafka_log_log_logendoffset": {"topic", "partition"},
}


@pytest.fixture
def used(kafka_broker):
    """A broker with ten records in a topic, of which a group has read four, and a topic that has refused a record."""
    kafka_broker.reset()
    kafka_broker.create_topic("small", max_message_bytes=200)
    send_what_is_too_large(kafka_broker)
    kafka_broker.create_topic("orders", partitions=2)
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        for _ in range(10):
            producer.send("orders", b"x" * 100, partition=0).get()
    consumer = KafkaConsumer(
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="castle",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    with consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        for _ in range(10):
            next(consumer)
        consumer.commit({partition: OffsetAndMetadata(4, "", -1)})
    return kafka_broker


def send_what_is_too_large(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0) as producer:
        with pytest.raises(Exception, match=r"TooLarge|too large"):
            producer.send("small", b"x" * 1000).get()


def test_what_went_in_and_out_and_how_far_a_group_is_behind(used):
    metrics = used.metrics
    assert metrics.value("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 10
    assert metrics.value("kafka_server_brokertopicmetrics_totalproducerequests_total", topic="orders") == 10
    bytes_in = metrics.value("kafka_server_brokertopicmetrics_bytesin_total", topic="orders")
    assert 10 * 100 < bytes_in < 10 * 250
    assert metrics.value("kafka_server_brokertopicmetrics_bytesout_total", topic="orders") >= bytes_in
    assert metrics.value("kafka_topic_partition_current_offset", topic="orders", partition=0) == 10
    assert metrics.value("kafka_log_log_size", topic="orders") == bytes_in
    assert metrics.value("kafka_consumergroup_lag", consumergroup="castle", topic="orders", partition=0) == 6
    assert metrics.value("kafka_consumergroup_lag_sum", consumergroup="castle") == 6
    assert metrics.value("kafka_network_requestmetrics_requests_total", request="Produce") >= 10
    assert metrics.value("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert metrics.value("kafka_controller_kafkacontroller_activecontrollercount") == 1


def test_a_refused_append_counts_as_failed_and_as_an_error_of_its_request(used):
    metrics = used.metrics
    assert metrics.value("kafka_server_brokertopicmetrics_failedproducerequests_total", topic="small") == 1
    assert metrics.value("kafka_server_brokertopicmetrics_messagesin_total", topic="small") == 0
    assert metrics.value("kafka_server_brokertopicmetrics_bytesin_total", topic="small") == 0
    errors = {"request": "Produce", "error": "MESSAGE_TOO_LARGE"}
    before = metrics.value("kafka_network_requestmetrics_errors_total", **errors)  # of all tests with this broker
    send_what_is_too_large(used)
    assert used.metrics.value("kafka_network_requestmetrics_errors_total", **errors) == before + 1


@pytest.mark.parametrize(
    "asked",
    [_STRIMZI_KAFKA, _STRIMZI_EXPORTER, _KAFKA_EXPORTER, _CONFLUENT],
    ids=["strimzi", "strimzi-exporter", "kafka-exporter", "confluent"],
)
def test_what_dashboards_ask_for_is_there(used, asked):
    metrics = used.metrics
    for name, labels in asked.items():
        assert name in metrics, name
        assert any(labels <= sample.labels.keys() for sample in metrics[name]), name


def test_what_the_projects_own_dashboard_asks_for_is_there(used):
    dashboard = json.loads((_ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 10
    names = {name for query in queries for name in re.findall(r"\b(?:kafka|barnabas|process)_\w+", query)}
    assert names <= set(used.metrics)


def test_the_list_in_the_documentation_is_complete(used):
    listed = (_ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in used.metrics if f"`{name}`" not in listed] == []


def test_a_sum_over_labels_and_a_name_that_is_not_there(used):
    metrics = used.metrics
    assert metrics.value("kafka_topic_partitions", topic="orders") == 2
    assert metrics.value("kafka_topic_partitions", topic="nothing") == 0
    with pytest.raises(KeyError):
        metrics.value("kafka_nonsense")


def test_each_of_several_brokers_has_its_own():
    with Barnabas(brokers=3) as brokers:
        topic = brokers.create_topic(partitions=3)
        with KafkaProducer(bootstrap_servers=brokers.bootstrap_servers) as producer:
            for partition in range(3):
                producer.send(topic, b"hello", partition=partition).get(60)
        metrics = brokers.metrics
    assert metrics.value("kafka_brokers") == 3
    assert metrics.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    led = [metrics.value("kafka_server_replicamanager_leadercount", broker=each) for each in range(3)]
    assert led == [1, 1, 1]
    written = "kafka_server_brokertopicmetrics_messagesin_total"
    assert [metrics.value(written, broker=each, topic=topic) for each in range(3)] == [1, 1, 1]

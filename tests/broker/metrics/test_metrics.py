"""Metrics of brokers in the test's own process. tests/barnabas/test_metrics.py has them with real clients."""

import asyncio

from barnabas.broker.metrics import metrics as module
from barnabas.broker.metrics.families import Families, as_data
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.metrics.of_process import Process
from tests.support.running_broker import cluster_of, create_topic, delete_topic, running


async def values(metrics, name, with_partitions=None):
    found = {family.name: family for family in await metrics.collect(with_partitions)}
    return {tuple(sample.labels.items()): sample.value for sample in found[name].samples} if name in found else {}


async def test_with_too_many_partitions_single_ones_are_named_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MANY_PARTITIONS", 2)
    async with running(tmp_path) as broker:
        metrics = Metrics(cluster_of(broker))
        await create_topic(broker, "t", 3)
        assert await values(metrics, "kafka_log_log_size") == {}
        assert await values(metrics, "barnabas_metrics_partitions_left_out") == {(): 3}
        assert len(await values(metrics, "kafka_log_log_size", True)) == 3
        assert await values(metrics, "kafka_server_replicamanager_leadercount") == {(): 3}


async def test_a_deleted_topic_goes_and_the_sum_stays(tmp_path):
    async with running(tmp_path) as broker:
        metrics = Metrics(cluster_of(broker))
        await create_topic(broker, "t")
        broker.replicas.traffic.of("t").messages_in += 5
        name = "kafka_server_brokertopicmetrics_messagesin_total"
        assert await values(metrics, name) == {(): 5, (("topic", "t"),): 5}
        await delete_topic(broker, "t")
        while broker.replicas.find("t", 0) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await values(metrics, name) == {(): 5}


async def test_the_loop_is_idle_for_a_share_of_the_time():
    process = Process(asyncio.get_running_loop())
    process.start()
    found = Families()
    process.add(found)
    process.stop()
    told = {metric["name"]: metric["samples"] for metric in as_data(found.all())}
    (idle,) = told["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"]
    assert 0 <= idle["value"] <= 1
    assert told["process_cpu_seconds_total"][0]["value"] > 0

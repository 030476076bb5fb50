"""Kafka's own command-line tools, unchanged, on three brokers: where partitions are, and how they are moved."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas import Barnabas
from tests.integration.clients.interface import wait_until
from tests.support.apache_kafka import TOOLS, java_command, run_tool

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def cluster() -> Iterator[Barnabas]:
    with Barnabas(brokers=3, journal=False) as cluster:
        yield cluster


def tool(cluster: Barnabas, name: str, *arguments: str) -> str:
    return run_tool(name, "--bootstrap-server", cluster.bootstrap_servers, *arguments).stdout


def partition(cluster: Barnabas, topic: str, index: int = 0) -> dict[str, object]:
    return dict(cluster.state["topics"][topic]["partitions"][index])


def write(cluster: Barnabas, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def test_topics_says_where_partitions_are(cluster: Barnabas):
    topic = cluster.create_topic(partitions=3)
    found = tool(cluster, "kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3\tReplicationFactor: 3" in found
    for index in range(3):
        state = partition(cluster, topic, index)
        replicas = ",".join(map(str, state["replicas"]))
        assert f"Partition: {index}\tLeader: {state['leader']}\tReplicas: {replicas}\tIsr: " in found
    assert tool(cluster, "kafka-topics", "--describe", "--under-replicated-partitions").strip() == ""
    cluster.nodes[2].kill()
    try:
        assert f"Topic: {topic}" in tool(cluster, "kafka-topics", "--describe", "--under-replicated-partitions")
    finally:
        cluster.nodes[2].start()
        wait_until(lambda: len(partition(cluster, topic)["isr"]) == 3, "all replicas")


def test_reassign_partitions_moves_them_and_takes_that_back(cluster: Barnabas, tmp_path: Path):
    topic = cluster.create_topic(replication_factor=1)
    write(cluster, topic)
    former = partition(cluster, topic)["leader"]
    new = next(each for each in cluster.nodes if each != former)
    plan = tmp_path / "plan.json"

    def reassign(replicas: list[int], what: str) -> str:
        wanted = [{"topic": topic, "partition": 0, "replicas": replicas}]
        plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
        return tool(cluster, "kafka-reassign-partitions", "--reassignment-json-file", str(plan), what)

    assert "Successfully started" in reassign([new], "--execute")
    wait_until(lambda: partition(cluster, topic)["replicas"] == [new], "the partition to be moved")
    assert "is completed" in reassign([new], "--verify")
    assert partition(cluster, topic)["leader"] == new
    assert partition(cluster, topic)["log_end_offset"] == 10

    other = next(each for each in cluster.nodes if each not in (former, new))
    cluster.change_controller(to=new)
    cluster.nodes[other].isolate()  # it can get nothing, and the tool still knows it
    try:
        assert "Successfully started" in reassign([new, other], "--execute")
        listed = tool(cluster, "kafka-reassign-partitions", "--list")
        assert f"{topic}-0: replicas: {new},{other}. adding: {other}." in listed
        assert "Successfully cancelled" in reassign([new, other], "--cancel")
        assert partition(cluster, topic)["replicas"] == [new]
    finally:
        cluster.nodes[other].heal()


def test_leader_election_brings_the_preferred_leader_back(cluster: Barnabas):
    topic = cluster.create_topic()
    preferred, follower, _ = partition(cluster, topic)["replicas"]
    cluster.move_leader(topic, 0, to=follower)
    which = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Successfully completed leader election (PREFERRED)" in tool(cluster, "kafka-leader-election", *which)
    wait_until(lambda: partition(cluster, topic)["leader"] == preferred, "the preferred leader")


def test_log_dirs_of_every_broker(cluster: Barnabas):
    topic = cluster.create_topic()
    write(cluster, topic)
    found = tool(cluster, "kafka-log-dirs", "--describe", "--topic-list", topic)
    brokers = json.loads(found.splitlines()[-1])["brokers"]
    assert sorted(each["broker"] for each in brokers) == [0, 1, 2]
    sizes = {place["size"] for each in brokers for found in each["logDirs"] for place in found["partitions"]}
    assert len(sizes) == 1
    assert sizes != {0}


def test_replica_verification_finds_all_replicas_the_same(cluster: Barnabas):
    """It reads every replica from its own broker, and reports again and again."""
    topic = cluster.create_topic()
    write(cluster, topic)
    where = ("--broker-list", cluster.bootstrap_servers, "--topics-include", topic, "--report-interval-ms", "200")
    command = java_command(TOOLS["kafka-replica-verification"], *where)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
        assert tool.stdout is not None
        reports = (line.partition(": ")[2] for line in tool.stdout)
        try:
            assert f"max lag is 0 for partition {topic}-0 at offset 10 among 1 partitions\n" in reports
        finally:
            tool.kill()


def test_consumer_groups_and_transactions_find_their_coordinators(cluster: Barnabas):
    topic = cluster.create_topic()
    write(cluster, topic)
    names = [f"group-{number}" for number in range(4)]
    for name in names:
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": name, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        assert len(consumer.consume(10, 60)) == 10
        consumer.commit(asynchronous=False)
        consumer.close()
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(topic, b"x")
        producer.commit_transaction(60)
    assert sorted(tool(cluster, "kafka-consumer-groups", "--list").split()) == names
    described = tool(cluster, "kafka-consumer-groups", "--describe", "--all-groups", "--offsets")
    assert all(name in described for name in names)
    listed = tool(cluster, "kafka-transactions", "list")
    assert all(name in listed for name in names)

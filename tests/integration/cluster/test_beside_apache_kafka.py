"""Apache Kafka 3.9.1 and Barnabas in one cluster, in each mix and with each make as controller.

Every make leads and follows: what one acknowledges the other has, and all replicas end with the same bytes. The mix of
only Apache Kafka shows that these tests expect what Kafka does.
"""

from __future__ import annotations

import itertools
import json
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.client.requests.data import produce
from barnabas.client.requests.quotas import alter_quotas
from barnabas.client.requests.records import batch
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import request_frame
from tests.support.apache_kafka import run_tool
from tests.support.cluster import BrokerNode, Cluster, every_mix, not_yet
from tests.support.dump_log import dump_log

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

K, B = "kafka", "barnabas"
NUMBERS = itertools.count()
PATIENCE = 120.0
SETTINGS = {"auto.leader.rebalance.enable": "false"}  # leaders move when a test moves them
MIXES = [
    pytest.param((makes, controller), id=f"{'-'.join(makes)}, controlled by {controller}")
    for makes in ([[K, K, K], [K, K, B], [K, B, B], [B, B, B]] if every_mix() else [[K, B, B]])
    for controller in dict.fromkeys(makes)
]
thorough = pytest.mark.skipif(not every_mix(), reason="BARNABAS_ALL_MIXES=1 runs it")


@pytest.fixture(scope="module", params=MIXES)
def mixed(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str]]:
    makes, controller = request.param
    if B in makes and (reason := not_yet()):
        pytest.skip(reason)
    with Cluster(makes, SETTINGS) as cluster:
        yield cluster, controller


@pytest.fixture
def cluster(mixed: tuple[Cluster, str]) -> Cluster:
    """Whole, and with a controller of the requested make, whatever the last test has done."""
    cluster, make = mixed
    cluster.network.heal()
    cluster.start_brokers([each for each in cluster.brokers if not each.is_running])
    cluster.await_whole()
    if cluster.controller.make != make:
        cluster.make_controller(next(each.id for each in cluster.brokers if each.make == make))
    return cluster


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Partition 0, 1, 2 with broker 1, 2, 3 as the preferred leader."""
    name = f"{request.node.originalname.removeprefix('test_')}-{next(NUMBERS)}"
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    new = NewTopic(name, len(replicas), replica_assignment=replicas, config={"segment.bytes": str(1 << 20)})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for each in admin.create_topics([new]).values():
        each.result(60)
    cluster.await_whole()
    return name


class Writer:
    """Sends to three partitions until it is closed, idempotently. `close` waits for the last acknowledgement."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.sent = 0
        self.failures: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                # A broker that has just started may not know any topics yet, and say so to clients.
                "topic.metadata.propagation.max.ms": 300_000,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 2,
                "log_level": 0,
            }
        )
        self._acknowledged = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._is_over.wait(0.01):
            for _ in range(5):
                value = b"%d" % self.sent
                self._producer.produce(self._topic, value, partition=self.sent % 3, on_delivery=self._delivered)
                self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: Any, _: object) -> None:
        if error:
            self.failures.append(error)
        else:
            self._acknowledged += 1

    def await_more(self, count: int = 100) -> None:
        """Wait until this many more records are acknowledged, whoever leads."""
        wanted = self._acknowledged + count
        deadline = time.monotonic() + PATIENCE
        while self._acknowledged < wanted:
            assert time.monotonic() < deadline, f"{self._acknowledged} of {self.sent} acknowledged, {self.failures[:3]}"
            time.sleep(0.05)

    def close(self) -> list[list[bytes]]:
        """What has to be in each partition."""
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0
        assert self.failures == []
        return [[b"%d" % each for each in range(self.sent) if each % 3 == index] for index in range(3)]

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()


def read(cluster: Cluster, topic: str, group: str = "reader") -> list[list[bytes]]:
    """Every committed record, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(3)])
    found: list[list[bytes]] = [[], [], []]
    left = {0, 1, 2}
    deadline = time.monotonic() + PATIENCE
    while left:
        assert time.monotonic() < deadline, f"{topic} could not be read: {left}"
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                found[message.partition()].append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    consumer.close()
    return found


def assert_replicas_are_the_same(cluster: Cluster, topic: str) -> None:
    cluster.await_whole()
    deadline = time.monotonic() + PATIENCE
    while differing := cluster.replicas_that_differ(topic, range(3)):  # the last records may be on their way
        assert time.monotonic() < deadline, differing
        time.sleep(0.1)


def move_leader(cluster: Cluster, topic: str, partition: int, replicas: Sequence[int], folder: Path) -> None:
    """To the first of these replicas, with Kafka's tools."""
    file = folder / "reassignment.json"
    entry = {"topic": topic, "partition": partition, "replicas": list(replicas)}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    where = ("--bootstrap-server", cluster.bootstrap)
    run_tool("kafka-reassign-partitions", *where, "--reassignment-json-file", str(file), "--execute")
    deadline = time.monotonic() + PATIENCE
    while True:
        verified = run_tool("kafka-reassign-partitions", *where, "--reassignment-json-file", str(file), "--verify")
        if "is completed" in verified.stdout and "still in progress" not in verified.stdout:
            break
        assert time.monotonic() < deadline, verified.stdout
    cluster.await_whole()
    one = ("--topic", topic, "--partition", str(partition))
    run_tool("kafka-leader-election", *where, "--election-type", "preferred", *one)
    while cluster.leader(topic, partition) is not cluster.broker(replicas[0]):
        assert time.monotonic() < deadline, f"broker {replicas[0]} does not lead {topic}-{partition}"
        time.sleep(0.1)


def one_of_each_make(cluster: Cluster) -> list[BrokerNode]:
    return list({each.make: each for each in cluster.brokers}.values())


def test_quotas_altered_on_one_make_apply_on_all(cluster: Cluster, topic: str) -> None:
    """Each make writes them where the other reads them, and announces them so that the other notices."""
    for writer in one_of_each_make(cluster):
        client_id = f"limited by {writer.make}"
        entity: dict[str, str | None] = {"user": "ANONYMOUS", "client-id": client_id}
        wire = Wire("127.0.0.1", writer.port)
        set_rate(wire, entity, 1000.0)
        deadline = time.monotonic() + PATIENCE
        for broker in cluster.brokers:
            while not holds_back(broker, topic, client_id):
                assert time.monotonic() < deadline, f"{broker.make} {broker.id} does not know what {writer.make} wrote"
        set_rate(wire, entity, None)
        wire.close()


def set_rate(wire: Wire, entity: dict[str, str | None], rate: float | None) -> None:
    request = alter_quotas((entity, {"producer_byte_rate": rate}))
    (altered,) = wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, request, 1).entries
    assert not altered.error_code


def holds_back(broker: BrokerNode, topic: str, client_id: str) -> bool:
    """Whether a client that sends too much to a partition that the broker leads is held back."""
    wire = Wire("127.0.0.1", broker.port)
    request = produce((topic, broker.id - 1, batch(b"x" * 20_000)))
    wire.send(request_frame(ApiKey.PRODUCE, request, 9, client_id=client_id))
    answer = wire.answer(ApiKey.PRODUCE, 9)
    wire.close()
    return bool(answer.throttle_time_ms)


def test_every_make_leads_and_follows(cluster: Cluster, topic: str) -> None:
    assert [cluster.leader(topic, index) for index in range(3)] == cluster.brokers
    with Writer(cluster, topic) as writer:
        writer.await_more(2000)
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_leaders_move_back_and_forth(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    with Writer(cluster, topic) as writer:
        for replicas in ([2, 3, 1], [3, 1, 2], [1, 2, 3]):
            writer.await_more()
            move_leader(cluster, topic, 0, replicas, tmp_path)
        writer.await_more()
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_a_replica_moves_to_another_broker(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """One broker after another gives up its replica, and gets it back with everything that was written meanwhile."""
    with Writer(cluster, topic) as writer:
        for replicas in ([1, 2], [2, 3], [3, 1], [1, 2, 3]):
            writer.await_more()
            move_leader(cluster, topic, 0, replicas, tmp_path)
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=thorough)])
def test_a_broker_of_each_make_goes_and_comes_back(cluster: Cluster, topic: str, end: str) -> None:
    with Writer(cluster, topic) as writer:
        for broker in one_of_each_make(cluster):
            writer.await_more()
            getattr(broker, end)()
            writer.await_more(300)  # without it
            cluster.start_brokers([broker])
            cluster.await_whole()
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_a_broker_of_each_make_loses_its_disk(cluster: Cluster, topic: str) -> None:
    with Writer(cluster, topic) as writer:
        for broker in one_of_each_make(cluster):
            writer.await_more()
            broker.kill()
            broker.wipe()
            cluster.start_brokers([broker])
            cluster.await_whole()
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_a_broker_with_a_full_disk_lets_others_lead(cluster: Cluster, topic: str) -> None:
    """It says so as Apache Kafka would, to controllers of each make; Apache Kafka itself ends without its only disk."""
    full = next((each for each in cluster.brokers if each.make == B), None)
    if full is None:
        pytest.skip("Apache Kafka ends")
    with Writer(cluster, topic) as writer:
        writer.await_more()
        # No file may be longer than a byte: every write to a log fails.
        before = resource.prlimit(full.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        try:
            deadline = time.monotonic() + PATIENCE
            while cluster.leader(topic, full.id - 1) is full:
                assert time.monotonic() < deadline, "nobody else leads"
                time.sleep(0.05)
            writer.await_more(300)
            cluster.await_out_of_sync(full, PATIENCE)
        finally:
            resource.prlimit(full.pid, resource.RLIMIT_FSIZE, before)
        cluster.await_whole()
        writer.await_more()
        expected = writer.close()
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_a_leader_that_was_cut_off_takes_back_what_nobody_else_has(cluster: Cluster, topic: str) -> None:
    """For each make: what it alone wrote (acks=1) is truncated by leader epoch, and it follows the new leader."""
    for broker in one_of_each_make(cluster):
        partition = broker.id - 1
        assert write(broker, topic, partition, b"before", acks=-1) == 0
        cluster.isolate(broker.id)
        for _ in range(10):
            assert write(broker, topic, partition, b"alone", acks=1) == 0
        deadline = time.monotonic() + PATIENCE
        while True:
            leader = cluster.leader(topic, partition)
            if leader not in (broker, None) and write(leader, topic, partition, b"together", acks=-1) == 0:
                break
            assert time.monotonic() < deadline, "no other broker has become leader"
            time.sleep(0.1)
        cluster.network.heal()
        assert_replicas_are_the_same(cluster, topic)
        values = read(cluster, topic)[partition]
        assert values[0] == b"before"
        assert set(values[1:]) == {b"together"}


def write(broker: BrokerNode, topic: str, partition: int, value: bytes, acks: int) -> int:
    """To this very broker, whatever it is; its error code."""
    with Wire("127.0.0.1", broker.port) as wire:
        answer = wire.ask(ApiKey.PRODUCE, produce((topic, partition, batch(value)), acks=acks), 9)
    error: int = answer.responses[0].partition_responses[0].error_code
    return error


@thorough
def test_the_controller_changes(cluster: Cluster, topic: str) -> None:
    """Each make takes over what the other has decided, and continues with it."""
    with Writer(cluster, topic) as writer:
        for broker in [cluster.brokers[0], *one_of_each_make(cluster), *one_of_each_make(cluster)]:
            cluster.make_controller(broker.id)
            writer.await_more()
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})  # which knows about it
            name = f"made-by-{broker.id}-{time.monotonic_ns()}"
            for each in admin.create_topics([NewTopic(name, 3, 3)]).values():
                each.result(60)
            cluster.await_whole()
            for each in admin.delete_topics([name]).values():
                each.result(60)
            # Apache Kafka 3.9.1 may not heal if its controller dies in the middle of a deletion.
            deadline = time.monotonic() + PATIENCE
            while cluster.tree.exists(f"/brokers/topics/{name}"):
                assert time.monotonic() < deadline, f"{name} is not deleted"
                time.sleep(0.1)
        cluster.controller.kill()
        writer.await_more()
        expected = writer.close()
    cluster.start_brokers([each for each in cluster.brokers if not each.is_running])
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


def test_transactions_over_partitions_of_every_leader(cluster: Cluster, topic: str) -> None:
    """Ten transactional ids, so that every broker coordinates some; every third transaction is aborted."""
    expected: list[list[bytes]] = [[], [], []]
    for number in range(10):
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"{topic}-{number}"})
        producer.init_transactions(PATIENCE)
        for count in range(3):
            producer.begin_transaction()
            value = b"%d-%d" % (number, count)
            for partition in range(3):
                producer.produce(topic, value, partition=partition)
            if count == 1:
                producer.flush(PATIENCE)
                producer.abort_transaction(PATIENCE)
                continue
            producer.commit_transaction(PATIENCE)
            for values in expected:
                values.append(value)
    assert read(cluster, topic) == expected
    assert_replicas_are_the_same(cluster, topic)


@thorough
def test_groups_whose_coordinator_goes(cluster: Cluster, topic: str) -> None:
    """Offsets that were committed to one make are there when the other one coordinates."""
    groups = [f"{topic}-{number}" for number in range(6)]
    consumers = {}
    for number, group in enumerate(groups):
        settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False}
        consumers[group] = Consumer({**settings, "log_level": 0})
        consumers[group].commit(offsets=[TopicPartition(topic, 0, 100 + number)], asynchronous=False)
    for broker in one_of_each_make(cluster):
        broker.kill()
        for number, group in enumerate(groups):
            deadline = time.monotonic() + PATIENCE
            while True:
                (found,) = consumers[group].committed([TopicPartition(topic, 0)], PATIENCE)
                if found.error is None or time.monotonic() > deadline:
                    break
            assert (group, found.offset) == (group, 100 + number)
        cluster.start_brokers([broker])
        cluster.await_whole()
    for each in consumers.values():
        each.close()


@thorough
def test_kafka_dump_log_reads_every_replica(cluster: Cluster, topic: str) -> None:
    with Writer(cluster, topic) as writer:
        writer.await_more(3000)
        writer.close()
    assert_replicas_are_the_same(cluster, topic)
    cluster.stop_brokers()  # what is flushed then is complete, the indexes too
    for broker in cluster.brokers:
        files = [file for index in range(3) for file in sorted((broker.data / f"{topic}-{index}").glob("*.log"))]
        assert "count" in dump_log(files, "--deep-iteration")

"""Topics and their settings, as administrators and crashes treat them."""

import asyncio
import json
import random
import re
import select
import threading

import confluent_kafka
import confluent_kafka.admin as confluent
import kafka
import kafka.admin
import kafka.errors
import pytest
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin import RecordsToDelete as AioRecordsToDelete
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType

from barnabas.broker.controller.uuids import uuid_to_string
from barnabas.broker.controller.view import ClusterView
from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.client.requests.admin import (
    BROKER,
    SET,
    TOPIC,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_log_dirs,
    incremental_alter_configs,
    new_topic,
)
from barnabas.client.requests.data import EARLIEST, LATEST, list_offsets, produce
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.apache_kafka import run_tool
from tests.support.batches import batch
from tests.support.broker_process import BrokerProcess

FIVE = batch(b"1", b"2", b"3", b"4", b"5")


def wire_to(broker, **options):
    return Wire("127.0.0.1", broker.port, **options)


def offset_of(wire, topic, timestamp):
    (answer,) = wire.ask(ApiKey.LIST_OFFSETS, list_offsets((topic, 0, timestamp)), 7).topics
    return answer.partitions[0].offset


# --- crashes ---


class Administrator(threading.Thread):
    """Creates and deletes topics as fast as it can, until the broker is gone.

    `known` says for each topic whether it must exist; None is one that was being created or deleted when the connection
    broke, which may exist or not.
    """

    def __init__(self, broker, name, seed, done):
        super().__init__(daemon=True)
        self._broker = broker
        self._name = name
        self._random = random.Random(seed)
        self._done = done
        self.known = {}
        self.failures = []

    def run(self):
        try:
            with wire_to(self._broker) as wire:
                for number in range(1_000_000):
                    self._work(wire, f"{self._name}-{number}")
        except OSError:
            pass

    def _work(self, wire, name):
        there = [topic for topic, is_there in self.known.items() if is_there]
        if there and self._random.random() < 0.5:
            name = self._random.choice(there)
            self.known[name] = None
            (outcome,) = wire.ask(ApiKey.DELETE_TOPICS, delete_topics(name), 6).responses
            self.known[name] = False
        else:
            self.known[name] = None
            partitions = self._random.choice([1, 2, 5, 30])
            topic = new_topic(name, partitions, configs=[("flush.messages", str(len(self.known)))])
            (outcome,) = wire.ask(ApiKey.CREATE_TOPICS, create_topics(topic), 7).topics
            self.known[name] = True
        if outcome.error_code:
            self.failures.append(outcome)
        self._done.release()


def topics_in(wire):
    answer = wire.ask(ApiKey.METADATA, MetadataRequest(topics=None), 12)
    return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics}


def assert_folders_match(data, topics):
    """There is a folder for each partition, with its topic's id, and no other but those that are being deleted."""
    folders = {path.name for path in data.iterdir() if path.is_dir() and not path.name.endswith("-delete")}
    assert folders == {f"{name}-{index}" for name, (_, count) in topics.items() for index in range(count)}
    for folder in folders:
        topic_id, _ = topics[folder.rpartition("-")[0]]
        assert f"topic_id: {uuid_to_string(topic_id)}" in (data / folder / "partition.metadata").read_text()


def test_a_topic_is_either_there_or_not_whenever_the_broker_is_killed(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    known = {}
    broker = BrokerProcess(tmp_path / "data")
    for turn in range(6):
        with broker, wire_to(broker) as wire:
            topics = topics_in(wire)
            for name, is_there in known.items():
                assert is_there is None or (name in topics) == is_there, name
            assert topics.keys() <= known.keys()
            assert_folders_match(broker.data, topics)
            known = dict.fromkeys(topics, True)

            done = threading.Semaphore(0)
            administrators = [
                Administrator(broker, f"topic-{turn}-{number}", chance.random(), done) for number in range(3)
            ]
            for administrator in administrators:
                administrator.start()
            for _ in range(chance.randrange(5, 40)):
                assert done.acquire(timeout=60)
            broker.kill()
            for administrator in administrators:
                administrator.join()
                assert not administrator.failures
                known |= administrator.known

    with broker:
        pass
    registry = EmbeddedRegistry.open(broker.data / "registry.db")
    view = ClusterView(registry)
    kept = {name: (topic.topic_id, len(topic.partitions)) for name, topic in view.topics.items()}
    asyncio.run(registry.close())
    assert {name for name, is_there in known.items() if is_there} <= kept.keys() <= known.keys()
    assert not any(known[name] is False for name in kept)
    assert_folders_match(broker.data, kept)


def test_deleted_records_stay_deleted_after_a_kill(broker):
    with wire_to(broker) as wire:
        wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t")), 7)
        wire.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE), ("t", 0, FIVE)), 9)
        wire.ask(ApiKey.DELETE_RECORDS, delete_records(("t", 0, 7)), 2)
    broker.kill()
    broker.start()
    with wire_to(broker) as wire:
        assert (offset_of(wire, "t", EARLIEST), offset_of(wire, "t", LATEST)) == (7, 10)
    broker.stop()
    broker.start()
    with wire_to(broker) as wire:
        assert offset_of(wire, "t", EARLIEST) == 7


def test_settings_hold_after_a_kill(broker):
    with wire_to(broker) as wire:
        wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t", configs=[("retention.ms", "1000")])), 7)
        request = incremental_alter_configs(
            (TOPIC, "t", [(SET, "max.message.bytes", "2000")]), (BROKER, "", [(SET, "log.flush.interval.ms", "7")])
        )
        wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
    broker.kill()
    broker.start()
    with wire_to(broker) as wire:
        names = ["retention.ms", "max.message.bytes", "flush.ms"]
        (result,) = wire.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((TOPIC, "t", names)), 4).results
        assert {config.name: config.value for config in result.configs} == {
            "retention.ms": "1000",
            "max.message.bytes": "2000",
            "flush.ms": "7",
        }
        answer = wire.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"x" * 3000))), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE


# --- large topics ---


def answers_before(wire, topic, socket_of_other):
    """How often a client sees a new topic in Metadata before the creator gets its answer."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    count = 0
    while True:
        (told,) = wire.ask(ApiKey.METADATA, request, 12).topics
        if is_readable(socket_of_other):
            return count
        count += told.error_code == ErrorCode.NONE


def is_readable(sock):
    return bool(select.select([sock], [], [], 0)[0])


def test_others_are_served_while_a_large_topic_comes_and_goes(broker):
    with wire_to(broker) as admin, wire_to(broker) as other:
        admin.send(request_frame(ApiKey.CREATE_TOPICS, create_topics(new_topic("large", 2000), timeout_ms=120_000), 7))
        assert answers_before(other, "large", admin.socket) > 0
        (created,) = admin.answer(ApiKey.CREATE_TOPICS, 7).topics
        assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 2000)
        answer = other.ask(ApiKey.PRODUCE, produce(("large", 1999, FIVE)), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

        (deleted,) = admin.ask(ApiKey.DELETE_TOPICS, delete_topics("large"), 6).responses
        assert deleted.error_code == ErrorCode.NONE
        (created,) = other.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("large", 2)), 7).topics
        assert created.error_code == ErrorCode.NONE
        (result,) = other.ask(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs(every=True), 5).results
        assert [(topic.name, len(topic.partitions)) for topic in result.topics] == [("large", 2)]
    broker.stop()
    assert_folders_match(broker.data, {"large": (created.topic_id, 2)})


# --- stock clients ---


def test_kafka_python_administers(broker):
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.create_topics([kafka.admin.NewTopic("t", 2, 1, topic_configs={"retention.ms": "1000"})])
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([kafka.admin.NewTopic("t", 2, 1)])
        with pytest.raises(kafka.errors.InvalidTopicError):
            admin.create_topics([kafka.admin.NewTopic("a b", 2, 1)])
        admin.create_partitions({"t": kafka.admin.NewPartitions(3)})
        assert [len(topic["partitions"]) for topic in admin.describe_topics(["t"])] == [3]

        topic = kafka.admin.ConfigResource("TOPIC", "t")
        changed = kafka.admin.ConfigResource("TOPIC", "t", {"flush.ms": "5"})
        admin.alter_configs([changed])
        modified = admin.describe_configs([topic])
        assert json.dumps(modified).count('"retention.ms"') == 1
        assert json.dumps(modified).count('"flush.ms"') == 1

        with wire_to(broker) as wire:
            wire.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
            admin.delete_records({kafka.TopicPartition("t", 0): 3})
            assert offset_of(wire, "t", EARLIEST) == 3
        assert broker.data.name in json.dumps(admin.describe_log_dirs())
        assert admin.list_partition_reassignments() is not None
        assert "t" in json.dumps(admin.describe_topic_partitions(["t"]), default=str)

        admin.delete_topics(["t"])
        assert "t" not in admin.list_topics()
    finally:
        admin.close()


def test_confluent_kafka_administers(broker):
    admin = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})

    def done(futures):
        return [future.result(60) for future in futures.values()]

    done(admin.create_topics([confluent.NewTopic("t", 2, 1, config={"retention.ms": "1000"})]))
    with pytest.raises(confluent_kafka.KafkaException, match="TOPIC_ALREADY_EXISTS"):
        done(admin.create_topics([confluent.NewTopic("t", 2, 1)]))
    done(admin.create_partitions([confluent.NewPartitions("t", 3)]))
    assert len(admin.list_topics("t", timeout=60).topics["t"].partitions) == 3

    resource = confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, "t")
    change = confluent.ConfigEntry(
        "cleanup.policy", "compact", incremental_operation=confluent.AlterConfigOpType.APPEND
    )
    done(admin.incremental_alter_configs([confluent.ConfigResource("topic", "t", incremental_configs=[change])]))
    (configs,) = done(admin.describe_configs([resource]))
    assert (configs["retention.ms"].value, configs["cleanup.policy"].value) == ("1000", "delete,compact")
    (configs,) = done(admin.describe_configs([confluent.ConfigResource("broker", "0")]))
    assert configs["num.partitions"].is_read_only
    done(admin.alter_configs([confluent.ConfigResource("topic", "t", set_config={"flush.ms": "5"})]))
    (configs,) = done(admin.describe_configs([resource]))
    assert (configs["retention.ms"].value, configs["flush.ms"].value) == ("604800000", "5")

    with wire_to(broker) as wire:
        wire.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
        (deleted,) = done(admin.delete_records([confluent_kafka.TopicPartition("t", 0, 3)]))
        assert deleted.low_watermark == 3
    elected = admin.elect_leaders(
        confluent_kafka.ElectionType.PREFERRED, [confluent_kafka.TopicPartition("t", 0)]
    ).result(60)
    assert ["ELECTION_NOT_NEEDED" in str(error) for error in elected.values()] == [True]

    done(admin.delete_topics(["t"]))
    assert "t" not in admin.list_topics(timeout=60).topics


async def test_aiokafka_administers(broker):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([AioNewTopic("t", 2, 1, topic_configs={"retention.ms": "1000"})])
        await admin.create_partitions({"t": AioNewPartitions(3)})
        (topic,) = await admin.describe_topics(["t"])
        assert len(topic["partitions"]) == 3
        resource = AioConfigResource(AioConfigResourceType.TOPIC, "t", configs={"flush.ms": "5"})
        await admin.alter_configs([resource])
        (answer,) = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, "t")])
        values = {config[0]: config[1] for config in answer.resources[0][4]}
        assert (values["flush.ms"], values["retention.ms"]) == ("5", "604800000")
        with wire_to(broker) as wire:
            wire.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)
            partition = AioTopicPartition("t", 0)
            assert await admin.delete_records({partition: AioRecordsToDelete(3)}) == {partition: 3}
        await admin.delete_topics(["t"])
        assert "t" not in await admin.list_topics()
    finally:
        await admin.close()


# --- Kafka's own tools ---


@pytest.fixture
def tool(broker):
    """Run one of Kafka's command-line tools against the broker, and give what it prints."""

    def run(name, *arguments, check=True):
        return run_tool(name, "--bootstrap-server", broker.bootstrap, *arguments, check=check).stdout

    return run


@pytest.mark.java
def test_kafka_topics(tool):
    with_settings = ("--config", "retention.ms=1000", "--partitions", "2", "--replication-factor", "1")
    assert "Created topic t." in tool("kafka-topics", "--create", "--topic", "t", *with_settings)
    assert "already exists" in tool("kafka-topics", "--create", "--topic", "t", check=False)
    tool("kafka-topics", "--alter", "--topic", "t", "--partitions", "3")
    described = tool("kafka-topics", "--describe", "--topic", "t")
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention.ms=1000", described)
    assert len(re.findall(r"Partition: \d\s+Leader: 0\s+Replicas: 0\s+Isr: 0", described)) == 3
    tool("kafka-topics", "--delete", "--topic", "t")
    assert tool("kafka-topics", "--list").strip() == ""


@pytest.mark.java
def test_kafka_configs(broker, tool):
    with wire_to(broker) as wire:
        wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t")), 7)
    to_topic = ("--entity-type", "topics", "--entity-name", "t")
    to_broker = ("--entity-type", "brokers", "--entity-name", "0")
    tool("kafka-configs", *to_topic, "--alter", "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]")
    described = tool("kafka-configs", *to_topic, "--describe")
    assert "retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000" in described
    assert "cleanup.policy=compact,delete" in described
    tool("kafka-configs", *to_broker, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2 sensitive=false" in tool("kafka-configs", *to_broker, "--describe")
    tool("kafka-configs", *to_broker, "--alter", "--delete-config", "log.cleaner.threads")
    every = tool("kafka-configs", *to_broker, "--describe", "--all")
    assert "log.cleaner.threads=1 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.threads=1}" in every


@pytest.mark.java
def test_tools_for_partitions(broker, tool, tmp_path):
    with wire_to(broker) as wire:
        wire.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("t", 2)), 7)
        wire.ask(ApiKey.PRODUCE, produce(("t", 0, FIVE)), 9)

    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"partitions": [{"topic": "t", "partition": 0, "offset": 3}], "version": 1}))
    assert "low_watermark: 3" in tool("kafka-delete-records", "--offset-json-file", str(offsets))
    assert tool("kafka-get-offsets", "--topic", "t", "--time", "earliest").split() == ["t:0:3", "t:1:0"]
    assert tool("kafka-get-offsets", "--topic", "t").split() == ["t:0:5", "t:1:0"]

    described = json.loads(tool("kafka-log-dirs", "--describe", "--topic-list", "t").splitlines()[-1])
    (directory,) = described["brokers"][0]["logDirs"]
    assert directory["logDir"] == str(broker.data)
    assert {p["partition"]: p["size"] for p in directory["partitions"]} == {"t-0": len(FIVE), "t-1": 0}

    elected = tool("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    assert "Valid replica already elected" in elected or elected.strip() == ""

    plan = tmp_path / "plan.json"
    parts = [{"topic": "t", "partition": index, "replicas": [0]} for index in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": parts}))
    moved = tool("kafka-reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    assert "Successfully started partition reassignments for t-0,t-1" in moved
    verified = tool("kafka-reassign-partitions", "--reassignment-json-file", str(plan), "--verify")
    assert verified.count("is completed") == 2
    assert "No partition reassignments found." in tool("kafka-reassign-partitions", "--list")

"""Stock clients, with no setting but the address, connect, list topics and describe the cluster."""

import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient

from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest


@pytest.fixture(scope="module")
def cluster_id(shared_broker):
    with Wire("127.0.0.1", shared_broker.port) as wire:
        return wire.ask(ApiKey.METADATA, MetadataRequest(topics=[]), 12).cluster_id


def test_kafka_python_lists_topics(shared_broker):
    consumer = kafka.KafkaConsumer(bootstrap_servers=shared_broker.bootstrap_servers)
    try:
        assert "shared" in consumer.topics()
        assert consumer.partitions_for_topic("shared") == {0, 1, 2}
    finally:
        consumer.close()


def test_kafka_python_describes_the_cluster(shared_broker, cluster_id):
    admin = kafka.KafkaAdminClient(bootstrap_servers=shared_broker.bootstrap_servers)
    try:
        found = admin.describe_cluster()
        assert (found["cluster_id"], found["controller_id"]) == (cluster_id, 0)
        assert [(broker["host"], broker["port"]) for broker in found["brokers"]] == [("127.0.0.1", shared_broker.port)]
        (topic,) = admin.describe_topics(["shared"])
        assert [partition["leader_id"] for partition in topic["partitions"]] == [0, 0, 0]
    finally:
        admin.close()


def test_confluent_kafka_lists_topics(shared_broker, cluster_id):
    found = AdminClient({"bootstrap.servers": shared_broker.bootstrap_servers}).list_topics(timeout=60)
    assert (found.cluster_id, found.controller_id) == (cluster_id, 0)
    assert list(found.topics["shared"].partitions) == [0, 1, 2]
    assert {broker.port for broker in found.brokers.values()} == {shared_broker.port}


def test_confluent_kafka_describes_the_cluster(shared_broker, cluster_id):
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap_servers})
    found = admin.describe_cluster(include_authorized_operations=True, request_timeout=60).result(60)
    assert found.cluster_id == cluster_id
    assert [(node.id, node.host, node.port) for node in found.nodes] == [(0, "127.0.0.1", shared_broker.port)]
    assert "CLUSTER_ACTION" in {operation.name for operation in found.authorized_operations}


async def test_aiokafka_lists_topics(shared_broker):
    async with AIOKafkaConsumer(bootstrap_servers=shared_broker.bootstrap_servers) as consumer:
        assert "shared" in await consumer.topics()


async def test_aiokafka_describes_the_cluster(shared_broker, cluster_id):
    admin = AIOKafkaAdminClient(bootstrap_servers=shared_broker.bootstrap_servers)
    await admin.start()
    try:
        found = await admin.describe_cluster()
        assert (found["cluster_id"], found["controller_id"]) == (cluster_id, 0)
        assert [(broker["host"], broker["port"]) for broker in found["brokers"]] == [("127.0.0.1", shared_broker.port)]
        (topic,) = await admin.describe_topics(["shared"])
        assert [partition["leader"] for partition in topic["partitions"]] == [0, 0, 0]
    finally:
        await admin.close()

from dataclasses import replace

from barnabas.client.requests.admin import describe_producers
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.batches import batch
from tests.support.running_broker import create_topic, partition, running


async def test_producers_and_their_transactions(tmp_path):
    # So that there is a transaction without a coordinator.
    settings = {"transaction.partition.verification.enable": "false"}
    async with running(tmp_path, **settings) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=2)
        idempotent = batch(b"1", b"2", producer_id=7, producer_epoch=3, base_sequence=0)
        transactional = batch(b"3", producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
        await client.ask(ApiKey.PRODUCE, produce(("t", 1, idempotent)), 9)
        await client.ask(ApiKey.PRODUCE, produce(("t", 1, transactional), transactional_id="id"), 9)
        (topic,) = (await client.ask(ApiKey.DESCRIBE_PRODUCERS, describe_producers(("t", [0, 1])), 0)).topics
        nobody, two = topic.partitions
        assert (nobody.error_code, nobody.active_producers) == (ErrorCode.NONE, [])
        told = {
            p.producer_id: (p.producer_epoch, p.last_sequence, p.current_txn_start_offset) for p in two.active_producers
        }
        assert told == {7: (3, 1, -1), 8: (0, 0, 2)}
        assert all(p.last_timestamp > 0 and p.coordinator_epoch == -1 for p in two.active_producers)


async def test_partitions_that_do_not_exist(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        request = describe_producers(("t", [1, -1]), ("unknown", [0]), ("a b", [0]))
        answer = await client.ask(ApiKey.DESCRIBE_PRODUCERS, request, 0)
        codes = [(topic.name, p.partition_index, p.error_code) for topic in answer.topics for p in topic.partitions]
        assert codes == [
            ("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("a b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]


async def test_a_follower_answers_too(tmp_path):
    """kafka-transactions asks the broker that --broker-id names."""
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        idempotent = batch(b"1", producer_id=7, producer_epoch=3, base_sequence=0)
        await client.ask(ApiKey.PRODUCE, produce(("t", 0, idempotent)), 9)
        partition(broker).follow(9, 1)
        (topic,) = (await client.ask(ApiKey.DESCRIBE_PRODUCERS, describe_producers(("t", [0])), 0)).topics
        (found,) = topic.partitions
        assert found.error_code == ErrorCode.NONE
        assert [each.producer_id for each in found.active_producers] == [7]


async def test_a_broker_without_a_replica(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        broker.cluster.put("elsewhere", replace(broker.cluster.topic("t"), name="elsewhere", topic_id=bytes(range(16))))
        request = describe_producers(("elsewhere", [0]))
        (topic,) = (await client.ask(ApiKey.DESCRIBE_PRODUCERS, request, 0)).topics
        assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

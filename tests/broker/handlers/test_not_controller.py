"""What a broker that is not the controller answers, as Apache Kafka 3.9 does; and what only brokers ask for."""

import pytest

from barnabas.broker.handlers import allocate_producer_ids, alter_partition, controlled_shutdown
from barnabas.client.requests.admin import create_partitions, create_topics, elect_leaders, new_topic
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionRequest,
    TopicRequest,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
SAYS = "This is not the correct controller for this cluster."


@pytest.fixture
async def client(tmp_path, monkeypatch):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t", partitions=2)
        with monkeypatch.context() as patched:
            patched.setattr(broker.controller, "term", None)
            yield client


async def test_topics_and_partitions_are_refused_one_by_one(client):
    answer = await client.ask(ApiKey.CREATE_TOPICS, create_topics(new_topic("a"), new_topic("b")), 7)
    assert [(each.name, each.error_code, each.error_message) for each in answer.topics] == [
        ("a", NOT_CONTROLLER, None),
        ("b", NOT_CONTROLLER, None),
    ]
    answer = await client.ask(ApiKey.CREATE_PARTITIONS, create_partitions(("t", 3)), 3)
    assert [(each.name, each.error_code) for each in answer.results] == [("t", NOT_CONTROLLER)]
    topics = [DeleteTopicState(name="t", topic_id=bytes(16)), DeleteTopicState(name=None, topic_id=b"x" * 16)]
    answer = await client.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    assert [(each.name, each.topic_id, each.error_code) for each in answer.responses] == [
        ("t", bytes(16), NOT_CONTROLLER),
        (None, b"x" * 16, NOT_CONTROLLER),
    ]


async def test_elections_are_refused_one_by_one(client):
    for request in (elect_leaders(("t", [0, 1])), elect_leaders(every=True)):
        answer = await client.ask(ApiKey.ELECT_LEADERS, request, 2)
        assert answer.error_code == ErrorCode.NONE
        assert [
            (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
            for topic in answer.replica_election_results
        ] == [("t", [(0, NOT_CONTROLLER), (1, NOT_CONTROLLER)])]


async def test_reassignments_are_refused_as_a_whole(client):
    moves = [ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[0])])]
    request = AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=moves)
    answer = await client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 0)
    assert (answer.error_code, answer.error_message, answer.responses) == (NOT_CONTROLLER, SAYS, [])
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    answer = await client.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request, 0)
    assert (answer.error_code, answer.error_message, answer.topics) == (NOT_CONTROLLER, SAYS, [])


async def test_what_brokers_ask_for(tmp_path, monkeypatch):
    async with running(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        epoch = broker.membership.broker_epoch
        ids = AllocateProducerIdsRequest(broker_id=0, broker_epoch=epoch)
        isr = PartitionRequest(
            partition_index=0, leader_epoch=0, partition_epoch=0, new_isr_with_epochs=[BrokerState(broker_id=0)]
        )
        other = PartitionRequest(partition_index=7, leader_epoch=0, partition_epoch=0, new_isr=[0])
        alter = AlterPartitionRequest(
            broker_id=0, broker_epoch=epoch, topics=[TopicRequest(topic_id=topic_id, partitions=[isr, other])]
        )
        stop = ControlledShutdownRequest(broker_id=0, broker_epoch=epoch)

        first, second = [await allocate_producer_ids.handle(broker, None, ids) for _ in range(2)]
        assert (first.error_code, first.producer_id_len) == (ErrorCode.NONE, 1000)
        assert second.producer_id_start == first.producer_id_start + 1000
        answer = await alter_partition.handle(broker, None, alter)
        (topic,) = answer.topics
        assert [(each.partition_index, each.error_code, list(each.isr)) for each in topic.partitions] == [
            (0, ErrorCode.NONE, [0]),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ]
        assert (topic.partitions[0].leader_id, topic.partitions[0].partition_epoch) == (0, 0)
        answer = await controlled_shutdown.handle(broker, None, stop)
        assert (answer.error_code, list(answer.remaining_partitions)) == (ErrorCode.NONE, [])

        with monkeypatch.context() as patched:
            patched.setattr(broker.controller, "term", None)
            assert (await allocate_producer_ids.handle(broker, None, ids)).error_code == NOT_CONTROLLER
            assert (await alter_partition.handle(broker, None, alter)).error_code == NOT_CONTROLLER
            answer = await controlled_shutdown.handle(broker, None, stop)
            assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH

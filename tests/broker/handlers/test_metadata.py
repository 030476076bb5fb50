import asyncio

import pytest

from barnabas.broker.registry.errors import RegistryUnavailable
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.schema import ZERO_UUID
from tests.broker.server.harness import connected, frame
from tests.support.running_broker import create_topic, running

NOT_ASKED = -(2**31)
# Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs
ALL_TOPIC_OPERATIONS = 0b110111111000
UNKNOWN_ID = bytes(range(16))


def topics(*names, **fields):
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def ids(*topic_ids):
    return MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids])


def summary(answer):
    return [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics]


@pytest.mark.parametrize("version", range(14))
async def test_every_version_lists_brokers_and_topics(tmp_path, version):
    async with running(tmp_path, node_id=7, broker_rack="r1") as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t", partitions=2)
        answer = await client.ask(ApiKey.METADATA, topics("t"), version)
        (told,) = answer.brokers
        assert (told.node_id, told.host, told.port) == (7, "127.0.0.1", broker.server.listeners[0].port)
        assert told.rack == ("r1" if version >= 1 else None)
        assert answer.controller_id == (7 if version >= 1 else -1)
        assert answer.cluster_id == (broker.cluster.cluster_id if version >= 2 else None)
        (topic,) = answer.topics
        assert (topic.name, topic.error_code, topic.is_internal) == ("t", ErrorCode.NONE, False)
        assert topic.topic_id == (topic_id if version >= 10 else ZERO_UUID)
        for index, partition in enumerate(topic.partitions):
            assert (partition.error_code, partition.partition_index, partition.leader_id) == (0, index, 7)
            assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([7], [7], [])
            assert partition.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", range(14))
async def test_no_topics_are_all_topics_in_version_0_and_none_later(tmp_path, version):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "a")
        await create_topic(broker, "b")
        answer = await client.ask(ApiKey.METADATA, MetadataRequest(topics=[]), version)
        assert [topic.name for topic in answer.topics] == (["a", "b"] if version == 0 else [])
        if version >= 1:
            answer = await client.ask(ApiKey.METADATA, MetadataRequest(topics=None), version)
            assert [topic.name for topic in answer.topics] == ["a", "b"]


async def test_a_topic_that_is_asked_for_twice_is_answered_once(tmp_path):
    async with running(tmp_path, auto_create_topics_enable="false") as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        answer = await client.ask(ApiKey.METADATA, topics("t", "x", "t", "x"), 12)
        assert [topic.name for topic in answer.topics] == ["t", "x"]
        answer = await client.ask(ApiKey.METADATA, ids(topic_id, UNKNOWN_ID, topic_id, UNKNOWN_ID), 12)
        assert [topic.topic_id for topic in answer.topics] == [topic_id, UNKNOWN_ID]


async def test_a_topic_that_a_client_names_is_created_and_is_in_the_same_answer(tmp_path):
    async with running(tmp_path, num_partitions=3) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.METADATA, topics("new", "also-new"), 12)
        assert summary(answer) == [("new", 0, 3), ("also-new", 0, 3)]
        assert [partition.leader_id for partition in answer.topics[0].partitions] == [0, 0, 0]


async def test_clients_that_name_the_same_new_topic_at_once_are_all_told(tmp_path):
    async with running(tmp_path) as broker:
        async with connected(broker.server) as one, connected(broker.server) as two:
            answers = await asyncio.gather(*(each.ask(ApiKey.METADATA, topics("new"), 12) for each in (one, two)))
        assert [summary(answer) for answer in answers] == [[("new", 0, 1)]] * 2
        assert answers[0].topics[0].topic_id == answers[1].topics[0].topic_id


async def test_the_client_or_the_broker_may_want_no_topic_created(tmp_path):
    missing = [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.METADATA, topics("new", allow_auto_topic_creation=False), 4)
        assert summary(answer) == missing
        assert not broker.cluster.topics
    async with running(tmp_path, auto_create_topics_enable="false") as broker, connected(broker.server) as client:
        assert summary(await client.ask(ApiKey.METADATA, topics("new"), 4)) == missing
        assert not broker.cluster.topics


@pytest.mark.parametrize("create", ["true", "false"])
async def test_a_name_that_no_topic_can_have_is_refused_and_the_others_are_not(tmp_path, create):
    async with running(tmp_path, auto_create_topics_enable=create) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        names = ["", ".", "..", "a/b", "ä", "x" * 250]
        answer = await client.ask(ApiKey.METADATA, topics(*names, "t"), 12)
        assert summary(answer) == [*((name, ErrorCode.INVALID_TOPIC_EXCEPTION, 0) for name in names), ("t", 0, 1)]


async def test_by_id_from_version_12(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        answer = await client.ask(ApiKey.METADATA, ids(topic_id, UNKNOWN_ID), 12)
        assert summary(answer) == [("t", 0, 1), (None, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
        assert [topic.topic_id for topic in answer.topics] == [topic_id, UNKNOWN_ID]


async def test_names_are_ignored_if_there_are_ids(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        request = ids(topic_id)
        request.topics.append(MetadataRequestTopic(name="new"))
        assert summary(await client.ask(ApiKey.METADATA, request, 12)) == [("t", 0, 1)]
        assert list(broker.cluster.topics) == ["t"]


@pytest.mark.parametrize("version", [10, 11, 12, 13])
async def test_a_topic_without_name_and_id_fails_the_whole_request(tmp_path, version):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.METADATA, topics("new", None), version)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("new", ErrorCode.INVALID_REQUEST),
            ("", ErrorCode.INVALID_REQUEST),
        ]
        assert answer.brokers == []
        assert answer.error_code == (ErrorCode.INVALID_REQUEST if version >= 13 else ErrorCode.NONE)
        assert not broker.cluster.topics


@pytest.mark.parametrize("version", [10, 11])
async def test_versions_10_and_11_have_a_field_for_ids_and_accept_none(tmp_path, version):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        topic_id = await create_topic(broker, "t")
        answer = await client.ask(ApiKey.METADATA, ids(topic_id), version)
        assert summary(answer) == [("", ErrorCode.INVALID_REQUEST, 0)]


async def test_authorized_operations_are_returned_on_request(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        answer = await client.ask(ApiKey.METADATA, topics("t"), 8)
        assert answer.topics[0].topic_authorized_operations == NOT_ASKED
        assert answer.cluster_authorized_operations == NOT_ASKED
        request = topics("t", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
        answer = await client.ask(ApiKey.METADATA, request, 8)
        assert answer.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS
        assert answer.cluster_authorized_operations > 0


async def test_a_client_whose_topic_cannot_be_created_is_not_left_waiting(tmp_path, monkeypatch):
    async with running(tmp_path) as broker, connected(broker.server) as client:

        async def full(topics, **_):
            raise RegistryUnavailable("the disk is full")

        monkeypatch.setattr(broker.controller.term, "create_topics", full)
        client.send(frame(ApiKey.METADATA, topics("new"), 12))
        assert await client.closed()
